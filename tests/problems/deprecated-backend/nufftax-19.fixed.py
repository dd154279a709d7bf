import jax.numpy as jnp


def spread(x, c, beta=2.3):
    return c * jnp.exp(beta * (jnp.sqrt(1.0 - x * x) - 1.0))
