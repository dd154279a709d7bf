"""What code of the host computes between a caller and a launch: with Python's numbers, objects and functions."""
