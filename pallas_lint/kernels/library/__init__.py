"""Models of known functions, those of Python, numpy, jax and Pallas."""
