"""One module analysed: its roots, its callers, what surrounds it."""
