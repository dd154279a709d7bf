"""A scaled copy whose index map counts elements where Pallas counts blocks."""

import functools

import jax
from jax.experimental import pallas as pl


def scale_kernel(x_ref, o_ref, *, factor):
    o_ref[...] = x_ref[...] * factor


def scale(x, factor=2.0, rows=8):
    # Pallas multiplies by the block size itself: from the second step on, `i * rows` is outside the array.
    # `interpret=True` does not show it, for it clamps the block into the array and computes wrong numbers.
    return pl.pallas_call(
        functools.partial(scale_kernel, factor=factor),
        grid=(x.shape[0] // rows,),
        in_specs=[pl.BlockSpec((rows, 128), lambda i: (i * rows, 0))],
        out_specs=pl.BlockSpec((rows, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
