"""What happens over the grid: blocks, index maps, steps."""
