"""Launches as they are bound, and where in the user's files they and their operations stand."""
