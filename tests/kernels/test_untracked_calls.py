"""Calls of unknown functions in a kernel, and the refs that they can reach."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

KERNEL = """
import functools
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from elsewhere import helper

def kernel(x_ref, o_ref, *, fn, extra=None):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    {call}
    o_ref[...] += value

def total(x, fn):
    return pl.pallas_call(
        functools.partial(kernel, fn=fn),
        grid=(8, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)
"""


def is_judged(call: str) -> bool:
    return any(finding.code == "PAL402" for finding in lint(KERNEL.replace("{call}", call), "0.12.0.1", "tpu"))


@pytest.mark.parametrize(
    "call",
    [
        "value = x_ref[...]",
        "value = x_ref[...] + fn(x_ref[...])",
        "value = fn.method(x_ref[...]) + x_ref[...]",
        "value = x_ref[...]\n    if extra is not None:\n        extra[...] = value",
    ],
)
def test_made_outside(call: str) -> None:
    """What the launcher was given cannot hold the kernel's refs."""
    assert is_judged(call)


@pytest.mark.parametrize(
    "call",
    ["value = fn(x_ref[...], o_ref)", "value = fn(lambda: o_ref)"],
)
def test_handed_over(call: str) -> None:
    assert not is_judged(call)


def test_unknown_decorator_may_run() -> None:
    call = "value = x_ref[...]\n\n    @fn.once()\n    def _():\n        o_ref[...] = jnp.zeros_like(o_ref)\n"
    assert not is_judged(call)
