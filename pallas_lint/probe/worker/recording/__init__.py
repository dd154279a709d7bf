"""Calls on record: with what arguments the functions of a project were called that led to launches."""
