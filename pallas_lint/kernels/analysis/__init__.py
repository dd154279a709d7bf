"""Analysis of one module: its roots, its callers, its project."""
