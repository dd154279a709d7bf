"""Launching calls, made into Launch objects: kernel, grid, specs, backend."""
