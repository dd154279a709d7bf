"""PAL307 for the heads of keys, of which there are fewer than of queries, where both have only names."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

CODE = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

def kernel(q_ref, k_ref, v_ref, o_ref):
    o_ref[...] = jax.nn.softmax(q_ref[...] @ k_ref[...].T) @ v_ref[...]

def attention(q, k, v, num_kv_heads, block=128):
    batch, heads, length, d = q.shape
    _, kv_heads, rows, _ = k.shape
    GUARD
    rows_of = lambda b, h, i: (b, h, i, 0)
    return pl.pallas_call(
        kernel,
        grid=(batch, heads, length // block),
        in_specs=[
            pl.BlockSpec((None, None, block, d), rows_of),
            pl.BlockSpec((None, None, rows, d), lambda b, h, i: (b, KEYS, 0, 0)),
            pl.BlockSpec((None, None, rows, d), lambda b, h, i: (b, VALUES, 0, 0)),
        ],
        out_specs=pl.BlockSpec((None, None, block, d), rows_of),
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
    )(q, k, v)
"""


def inputs(guard: str, keys: str, values: str) -> list[str]:
    """The inputs that have a warning."""
    code = CODE.replace("GUARD", guard).replace("KEYS", keys).replace("VALUES", values)
    found = lint(code, "0.12.0.1", select="PAL307")
    assert all(each.severity.name == "WARNING" for each in found)
    return [each.message.partition(" of input ")[2].split(" ")[0] for each in found]


GUARDS = [
    "group = heads // kv_heads",
    "assert heads % kv_heads == 0; group = 2",
    "assert k.shape[1] == num_kv_heads; group = heads // num_kv_heads",
    "assert k.shape == v.shape; group = heads // v.shape[1]",
]


@pytest.mark.parametrize("guard", GUARDS)
def test_a_step_for_each_head_of_the_queries(guard: str) -> None:
    assert inputs(guard, "h", "h // group") == ["1"]
    assert inputs(guard, "h // group", "h") == ["2"]
    assert inputs(guard, "h // group", "h // group") == []


@pytest.mark.parametrize(
    "guard", ["group = 1", "group = heads // kv_heads\n    assert heads == kv_heads", "group = heads // num_kv_heads"]
)
def test_numbers_of_heads_that_may_be_equal(guard: str) -> None:
    assert inputs(guard, "h", "h") == []
