"""What known functions do, those of Python, numpy, jax and Pallas."""
