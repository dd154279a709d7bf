"""Helpers, some of which run inside kernels."""

import jax.numpy as jnp


def running_sum(values):
    # Fine under `jax.jit`; in a kernel there is no lowering for it on TPU.
    return jnp.cumsum(values, axis=-1)
