"""Uninitialised memory that a kernel's results depend on, and where it is read."""
