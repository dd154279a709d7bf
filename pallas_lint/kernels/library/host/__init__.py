"""Host code between a caller and a launch: Python's numbers, objects and functions."""
