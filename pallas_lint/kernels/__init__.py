"""What Pallas sees: launches, kernels, refs, specs, and the operations a kernel performs."""
