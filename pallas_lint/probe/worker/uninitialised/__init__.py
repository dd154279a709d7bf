"""Which memory that nobody wrote a kernel's results depend on, and where it is read."""
