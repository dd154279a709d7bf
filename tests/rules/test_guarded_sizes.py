"""Sizes that guards restrict to multiples: the smallest of them for which a launch fails."""

from __future__ import annotations

import pytest

from pallas_lint.finding import Severity
from pallas_lint.testing import lint

HEAD = """
import math
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as plgpu

def rows_kernel(x_ref, o_ref):
    o_ref[0, :] = jnp.exp(x_ref[0, :])

def halves_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] * y_ref[...]

def is_power(n):
    return n & (n - 1) == 0

"""
ROWS = """
    spec = pl.BlockSpec((1, width), lambda i: (i, 0))
    return pl.pallas_call(rows_kernel, grid=(rows,), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=plgpu.CompilerParams())(x)
"""
HALVES = """
    half = width // 2
    return pl.pallas_call(halves_kernel, grid=(4,), out_specs=pl.BlockSpec((8, half), lambda i: (i, 0)),
        in_specs=[pl.BlockSpec((8, half), lambda i: (i, 0)), pl.BlockSpec((8, half), lambda i: (i, 1))],
        out_shape=jax.ShapeDtypeStruct((32, half), x.dtype), compiler_params=pltpu.CompilerParams())(x, x)
"""


def verdicts(guard: str, body: str, code: str, parameters: str = "x") -> list[tuple[Severity, str]]:
    text = f"{HEAD}def launch({parameters}):\n    rows, width = x.shape\n{guard}{body}"
    found = [each for each in lint(text, "0.12.0.1") if each.code == code]
    return sorted({(each.severity, each.message) for each in found}, key=str)


@pytest.mark.parametrize(
    ("guard", "number"),
    [
        ("    if width % 64:\n        raise ValueError\n", 192),
        ("    assert not width % 48\n", 48),
        ("    assert width % 64 == 0\n    assert width % 96 == 0\n", 192),
        ("    assert x.shape == y.shape\n    assert width % 64 == 0\n", 192),
    ],
)
def test_the_smallest_multiple_that_is_no_power_of_two(guard: str, number: int) -> None:
    message = f"`x_ref[0, :]` has {number} elements where `x.shape[1]` is {number}, which the code allows: "
    found = verdicts(guard, ROWS, "PAL107", "x, y")
    assert found == [(Severity.WARNING, f"{message}Triton arrays need a power of two")]


@pytest.mark.parametrize(
    "guard",
    [
        "",
        "    assert width % 64 == 0 and width in (64, 128)\n",
        "    assert width % 64 == 0 and width <= 128\n",
        "    assert width % 64 == 0 and width >= 256\n",
        "    assert width % 64 == 0 and width == block\n",
        "    assert width % 64 == 0 and is_power(width)\n",
        "    assert width % 64 == 0\n    if width & (width - 1):\n        raise ValueError\n",
        "    assert width % 64 == 0 and math.log2(width).is_integer()\n",
        "    assert width % 64 == 0\n    assert width == pl.next_power_of_2(width)\n",
    ],
)
def test_sizes_that_the_code_restricts_to_powers_of_two_perhaps(guard: str) -> None:
    assert not verdicts(guard, ROWS, "PAL107", "x, block")


@pytest.mark.parametrize(("divisor", "number"), [(128, 128), (384, 384), (64, 64)])
def test_the_smallest_multiple_of_which_a_block_is_no_tile(divisor: int, number: int) -> None:
    found = verdicts(f"    assert width % {divisor} == 0\n", HALVES, "PAL201")
    size = f"block dimension 1 is {number // 2}, not a multiple of 128 nor the array's {number}"
    assert (Severity.WARNING, f"{size} where `x.shape[1]` is {number}, which the code allows") in found


@pytest.mark.parametrize(
    "guard", ["", "    assert width % 256 == 0\n", "    assert width % 128 == 0 and width > 200\n"]
)
def test_a_block_that_is_a_tile_for_every_multiple_or_unguarded_ones(guard: str) -> None:
    assert not verdicts(guard, HALVES, "PAL201")
