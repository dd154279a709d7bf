"""Tuning: calls with other block sizes, and tables of them, compared by predicted cost."""
