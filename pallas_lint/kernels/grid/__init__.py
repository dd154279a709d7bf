"""Evaluation over the grid: blocks, index maps, steps."""
