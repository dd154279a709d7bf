"""PAL412: indices of prefetched tables in index maps stay within the table."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(table_ref, x_ref, o_ref):
    o_ref[...] = x_ref[...]


def gather(pages, table):
    rows, count = table.shape
    return pl.pallas_call(
        kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=({grid}),
            in_specs=[pl.BlockSpec((1, 16, 128), lambda i, j, table: ({index}, 0, 0))],
            out_specs=pl.BlockSpec((1, 16, 128), lambda i, j, table: (i, j, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((rows, count * 16, 128), pages.dtype),
    )(table, pages)


{call}
"""
_CALL = "gather(jnp.ones((64, 16, 128)), jnp.zeros({shape}, jnp.int32))"


def found(index: str, shape: str = "", grid: str = "rows, count") -> list[tuple[int, str]]:
    code = _MODULE.format(index=index, grid=grid, call=_CALL.format(shape=shape) if shape else "")
    return [(finding.span.start.line, finding.severity.value) for finding in lint(code, select="PAL412")]


@pytest.mark.parametrize("shape", ["", "(2, 8)", "(8, 2)"])
def test_axes_in_another_order(shape: str) -> None:
    assert found("table[j, i]", shape) == [(18, "warning")]


@pytest.mark.parametrize(
    ("index", "shape"), [("table[i, j + 1]", "(2, 8)"), ("table[i, j * 2]", "(2, 8)"), ("table[i + j, 0]", "(2, 8)")]
)
def test_past_the_end_by_numbers(index: str, shape: str) -> None:
    assert found(index, shape) == [(18, "warning")]


@pytest.mark.parametrize(
    ("index", "shape", "grid"),
    [
        ("table[i, j]", "(2, 8)", "rows, count"),
        ("table[i, j]", "", "rows, count"),
        ("table[j, i]", "", "count, rows"),
        ("table[i, jnp.minimum(j + 1, 7)]", "(2, 8)", "rows, count"),
        ("table[0, table[i, 0]]", "(2, 8)", "rows, count"),
        ("table[i, 0]", "", "rows, count"),
    ],
)
def test_within_the_table(index: str, shape: str, grid: str) -> None:
    assert found(index, shape, grid) == []
