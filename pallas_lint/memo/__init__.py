"""Caches that survive an edit."""
