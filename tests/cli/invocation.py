"""What the tests of the command line run it on, and what a run comes to."""

from __future__ import annotations

from attrs import frozen

KERNEL = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def kernel(x_ref, o_ref):
    m = x_ref[...]
    o_ref[...] = jnp.where(jnp.isfinite(m), m, 0.0)


def run(x):
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.TritonCompilerParams(),
    )(x)
"""
# A version at which the kernel above has a finding with a safe fix on line 9.
OLD = ("--jax-version", "0.4.35")


@frozen
class Ran:
    status: int
    out: str
    err: str
