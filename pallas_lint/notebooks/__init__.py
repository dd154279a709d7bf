"""Notebooks: their cells as one source, and what is written back to them."""
