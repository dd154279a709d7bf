"""Running offsets of variable-length rows."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def offsets_kernel(lengths_ref, offsets_ref):
    lengths = lengths_ref[...]
    offsets_ref[...] = jnp.cumsum(lengths, axis=-1) - lengths


def offsets(lengths: jax.Array) -> jax.Array:
    return pl.pallas_call(
        offsets_kernel,
        out_shape=jax.ShapeDtypeStruct(lengths.shape, lengths.dtype),
    )(lengths)
