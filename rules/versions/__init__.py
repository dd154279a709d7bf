"""PAL7xx: the API by jax version. Driven by the compatibility data."""
