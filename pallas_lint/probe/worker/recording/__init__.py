"""Recorded calls: arguments with which a project's functions were called that led to launches."""
