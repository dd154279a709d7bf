"""Edits that rules propose."""
