"""The HTML report, and its pictures of grids and memory."""
