"""The vocabulary: abstract values, launches, and what kernels do, as data."""
