"""PAL420: parts of a block that no iteration of a loop reads."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_CODE = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

def kernel(x_ref, o_ref):
    def add(i, total):
        return total + {read}

    o_ref[...] = lax.fori_loop({first}, {count}, add, jnp.zeros((8, 128))){more}

def total(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)

total(jnp.ones((64, 128)))
"""


# A product with such slices is wrong when jax 0.12.0.1 interprets it, and right with `i * 8`.
@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({}, True),
        ({"read": "x_ref[pl.ds(i, 8), :]", "count": "x_ref.shape[0] // 8"}, True),
        ({"read": "x_ref[pl.ds(i * 8, 8)]"}, False),
        ({"count": "57"}, False),  # a window that moves by one element
        ({"count": "4"}, False),
        ({"first": "1"}, False),
        ({"read": "x_ref[pl.ds(i, 8)] + x_ref[pl.ds(56 - i, 8)]"}, False),
        ({"more": " + x_ref[...].sum(0)"}, False),
    ],
)
def test_slices_that_start_at_the_index_of_a_loop(given: dict[str, str], wrong: bool) -> None:
    code = _CODE.format(**{"read": "x_ref[pl.ds(i, 8)]", "first": "0", "count": "8", "more": "", **given})
    found = lint(code, "0.12.0.1", "tpu", "PAL420")
    assert ["they overlap" in each.message for each in found] == [True] * wrong
