"""Argument types with which functions that launch kernels are really called, and where that is told."""
