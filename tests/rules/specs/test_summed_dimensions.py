"""PAL307: the parts that a sum over the grid takes of two operands belong together, whatever the sizes are."""

from __future__ import annotations

import pytest

from pallas_lint.testing import lint

_MODULE = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl


def kernel(x_ref, dy_ref, dw_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        dw_ref[...] = jnp.zeros_like(dw_ref)

    dw_ref[...] += {product}


def run(x, dy, rows=128, columns=128):
    return pl.pallas_call(
        kernel,
        grid=(x.shape[1] // columns, dy.shape[1] // columns, {steps} // rows),
        in_specs=[
            pl.BlockSpec({x}),
            pl.BlockSpec({dy}),
        ],
        out_specs=pl.BlockSpec((columns, columns), lambda i, j, t: (i, j)),
        out_shape=jax.ShapeDtypeStruct((x.shape[1], dy.shape[1]), jnp.float32),
    )(x, dy)
"""
_X, _DY = "(rows, columns), lambda i, j, t: (t, i)", "(rows, columns), lambda i, j, t: (t, j)"
_OF_ROWS = "lax.dot_general(x_ref[...], dy_ref[...], (((0,), (0,)), ((), ())), preferred_element_type=jnp.float32)"


def found(product: str = _OF_ROWS, x: str = _X, dy: str = _DY, steps: str = "x.shape[0]") -> list[tuple[int, str]]:
    code = _MODULE.format(product=product, x=x, dy=dy, steps=steps)
    return [(finding.span.start.line, finding.severity.value) for finding in lint(code, select="PAL307")]


def test_right() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("x", "dy", "line"),
    [
        (_X, "(rows, columns), lambda i, j, t: (i, j)", 21),
        (_X, "(rows, columns), lambda i, j, t: (j, j)", 21),
        ("(rows, columns), lambda i, j, t: (j, i)", _DY, 20),
        (_X, "(None, rows, columns), lambda i, j, t: (0, i, j)", 21),
    ],
)
@pytest.mark.parametrize("cast", ["", ".astype(jnp.bfloat16)"])
def test_another_axis_walks_the_other_operand(x: str, dy: str, line: int, cast: str) -> None:
    steps = "x.shape[0]" if line == 21 else "dy.shape[0]"
    assert found(_OF_ROWS.replace("[...]", f"[...]{cast}"), x, dy, steps) == [(line, "warning")]


def test_an_index_that_takes_a_dimension_of_size_1_away() -> None:
    product = _OF_ROWS.replace("dy_ref[...]", "dy_ref[0]")
    wrong = "(1, rows, columns), lambda i, j, t: (0, i, j)"
    assert found(product, dy=wrong) == [(21, "warning")]
    assert found(product, dy=wrong.replace("i, j)", "t, j)")) == []


@pytest.mark.parametrize(
    ("product", "dy"),
    [
        ("x_ref[...] * dy_ref[...]", "(rows, columns), lambda i, j, t: (i, j)"),  # no sum
        (_OF_ROWS, "(rows, columns), lambda i, j, t: (t + i, j)"),  # a sum over neighbours
        (_OF_ROWS.replace("x_ref[...]", "jnp.exp(x_ref[...])"), "(rows, columns), lambda i, j, t: (i, j)"),  # not seen
    ],
)
def test_silent(product: str, dy: str) -> None:
    assert found(product, dy=dy) == []
