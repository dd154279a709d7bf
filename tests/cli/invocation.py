"""What the tests of the command line run it on, and what a run comes to."""

from __future__ import annotations

from attrs import frozen

KERNEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def run(x):
    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i * 8, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
    )(x)
"""
# The kernel above has one finding, with a safe fix, on line 14; with a jax version given, nothing is assumed.
OLD = ("--jax-version", "0.4.35")


@frozen
class Ran:
    status: int
    out: str
    err: str
