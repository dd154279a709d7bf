"""PAL425: shifts by as many bits as there are."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_KERNEL = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = {shifted}

def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, jnp.int32))(x)

run(jnp.ones((32, 128), jnp.{dtype}))
"""


@pytest.mark.parametrize(
    ("shifted", "dtype", "left"),
    [
        ("x << 8", "int8", "every bit is lost"),
        ("jnp.left_shift(x, 9)", "uint8", "every bit is lost"),
        ("lax.shift_left(x, jnp.int32(3)) << 32", "int32", "every bit is lost"),
        ("x >> 8", "uint8", "every bit is lost"),
        ("x >> 8", "int8", "only the sign is left"),
        ("jnp.right_shift(x, 16)", "int16", "only the sign is left"),
        ("lax.shift_right_logical(x, 32)", "int32", "every bit is lost"),
    ],
)
def test_flagged(shifted: str, dtype: str, left: str) -> None:
    (finding,) = lint(_KERNEL.format(shifted=shifted, dtype=dtype), select="PAL425")
    assert f" bits: {left}" in finding.message


@pytest.mark.parametrize(
    ("shifted", "dtype"),
    [
        ("x << 7", "int8"),
        ("x.astype(jnp.int32) << 8", "int8"),
        ("x << 8", "int32"),
        ("x << jnp.int32(8)", "int8"),
        ("256 >> x", "int32"),
        ("x >> 31", "int32"),
        ("(x + jnp.int32(0)) << 16", "int8"),
    ],
)
def test_silent(shifted: str, dtype: str) -> None:
    assert lint(_KERNEL.format(shifted=shifted, dtype=dtype), select="PAL425") == []
