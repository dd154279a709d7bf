"""Known calls: argument types with which functions that launch kernels are really called, and their sources."""
