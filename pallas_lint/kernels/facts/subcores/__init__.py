"""Facts about kernels on the subcores of SparseCores."""
