"""The abstract interpretation of kernels: launches, kernels, refs, specs and operations."""
