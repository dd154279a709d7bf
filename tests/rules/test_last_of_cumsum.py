"""The last of a running sum, and what only looks like it."""

from __future__ import annotations

import pytest

from pallas_lint.testing import fixed_text

CODE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x * PART


def run():
    return pl.pallas_call(
        kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32), compiler_params=pltpu.CompilerParams()
    )(jnp.zeros((8, 128)))
"""


def fixed(part: str) -> str:
    """The part as the fix leaves it."""
    after = fixed_text(CODE.replace("PART", part), "0.10.2", "tpu:v5e", "PAL101")
    return next(line for line in after.splitlines() if "o_ref[...] =" in line).partition(" * ")[2]


@pytest.mark.parametrize(
    ("part", "after"),
    [
        ("jnp.cumsum(x, -1)[:, -1:]", "jnp.sum(x, axis=-1, keepdims=True)"),
        ("jnp.cumsum(x, axis=0)[-1]", "jnp.sum(x, axis=0)"),
        ("jnp.cumsum(x, axis=0)[-1, :]", "jnp.sum(x, axis=0)"),
        ("jnp.cumsum(axis=1, a=x + 1)[..., -1:]", "jnp.sum(x + 1, axis=1, keepdims=True)"),
        ("lax.cumsum(x, axis=1)[..., -1:]", "jnp.sum(x, axis=1, keepdims=True)"),
    ],
)
def test_it_is_a_sum(part: str, after: str) -> None:
    assert fixed(part) == after


@pytest.mark.parametrize(
    "part",
    [
        "jnp.cumsum(x, 1)", "jnp.cumsum(x)[-1:]", "jnp.cumsum(x, 1)[:, -2:]", "jnp.cumsum(x, 1)[-1:]",
        "jnp.cumsum(x, 0)[..., -1:]", "jnp.cumsum(x, 1)[:, 127:]", "jnp.cumsum(x, 1)[:4, -1:]",
        "jnp.cumsum(x, 1)[:, -1::2]", "lax.cumsum(x, axis=1, reverse=True)[:, -1:]", "jnp.cumprod(x, 1)[:, -1:]",
        "jnp.cumsum(x, 1, dtype=jnp.float32)[:, -1:]", "jnp.cumsum(x, 1)[:, -1:, ..., ...]",
    ],
)  # fmt: skip
def test_it_is_something_else(part: str) -> None:
    assert fixed(part) == part
