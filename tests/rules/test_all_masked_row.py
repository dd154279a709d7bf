"""PAL417: softmax over rows that may be masked entirely with minus infinity."""

from __future__ import annotations

import textwrap

import pytest

from pallas_lint.testing import fixed, lint

_MODULE = """\
import functools
import math
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

NEG_INF = float("-inf")
MASK_VALUE = -0.7 * float(np.finfo(np.float32).max)

def attend(s):
    m = jnp.max(s, axis=-1, keepdims=True)
    return jnp.exp(s - m)

def kernel(x_ref, mask_ref, len_ref, o_ref, m_ref, l_ref):
    mask = mask_ref[...] != 0
    s = x_ref[...]
{body}

def run(x, mask, n):
    return pl.pallas_call(
        kernel,
        in_specs=[
            pl.BlockSpec((8, 128), lambda: (0, 0)),
            pl.BlockSpec((8, 128), lambda: (0, 0)),
            pl.BlockSpec(memory_space=pltpu.SMEM),
        ],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32), pltpu.VMEM((8, 128), jnp.float32)],
    )(x, mask, n)
"""


def module(body: str) -> str:
    return _MODULE.format(body=textwrap.indent(textwrap.dedent(body).strip(), "    "))


def severities(body: str) -> list[str]:
    return [finding.severity.value for finding in lint(module(body), select="PAL417")]


NAN = {
    "plain": "s = jnp.where(mask, s, -jnp.inf)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "numpy's infinity": "s = jnp.where(mask, s, -np.inf)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "a constant": "s = jnp.where(mask, s, NEG_INF)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "math": "s = jnp.where(mask, s, -math.inf)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "turned around": "s = jnp.where(~mask, -jnp.inf, s)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "full_like": (
        "s = jnp.where(mask, s, jnp.full_like(s, -jnp.inf))\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))"
    ),
    "select": (
        "s = lax.select(mask, s, jnp.full((8, 128), -jnp.inf, jnp.float32))\n"
        "o_ref[...] = jnp.exp(s - jnp.max(s, -1, keepdims=True))"
    ),
    "added": "s = s + jnp.where(mask, 0.0, -jnp.inf)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "base two": "s = jnp.where(mask, s, -jnp.inf)\nm = s.max(axis=-1)\no_ref[...] = jnp.exp2((s - m[:, None]) * 1.4)",
    "in steps": "s = jnp.where(mask, s, -jnp.inf)\nm = s.max(-1, keepdims=True)\nd = s - m\no_ref[...] = jnp.exp(d)",
    "helper": "o_ref[...] = attend(jnp.where(mask, s, -jnp.inf))",
    "softmax": "o_ref[...] = jax.nn.softmax(jnp.where(mask, s, -jnp.inf), axis=-1)",
    "scaled": "s = jnp.where(mask, s, -jnp.inf) * 0.125\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "running in a carry": """
        def body(i, carry):
            m_prev, l_prev = carry
            t = jnp.where(mask, s, -jnp.inf)
            m = jnp.maximum(m_prev, t.max(axis=-1, keepdims=True))
            p = jnp.exp(t - m)
            return m, l_prev * jnp.exp(m_prev - m) + p.sum(axis=-1, keepdims=True)
        m, l = lax.fori_loop(0, 4, body, (jnp.full((8, 1), -jnp.inf), jnp.zeros((8, 1))))
        o_ref[...] = jnp.broadcast_to(l, (8, 128))
        """,
    "running in scratch": """
        @pl.when(pl.program_id(0) == 0)
        def _():
            m_ref[...] = jnp.full_like(m_ref, -jnp.inf)
        t = jnp.where(mask, s, -jnp.inf)
        m_prev = m_ref[...]
        m = jnp.maximum(m_prev, jnp.max(t, axis=-1, keepdims=True))
        l_ref[...] = l_ref[...] * jnp.exp(m_prev - m) + jnp.exp(t - m)
        m_ref[...] = m
        """,
    "a guard that NaN passes": """
        s = jnp.where(mask, s, -jnp.inf)
        p = jnp.exp(s - s.max(axis=-1, keepdims=True))
        total = p.sum(axis=-1, keepdims=True)
        o_ref[...] = p / jnp.where(total == 0.0, 1.0, total)
        """,
}


@pytest.mark.parametrize("name", NAN)
def test_nan(name: str) -> None:
    assert severities(NAN[name]) == ["warning"]


FINE = {
    "finite": "s = jnp.where(mask, s, -1e30)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "a finite constant": "s = jnp.where(mask, s, MASK_VALUE)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "finfo": (
        "s = jnp.where(mask, s, jnp.finfo(s.dtype).min)\no_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))"
    ),
    "not masked": "o_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))",
    "guarded maximum": """
        s = jnp.where(mask, s, -jnp.inf)
        m = s.max(axis=-1, keepdims=True)
        o_ref[...] = jnp.exp(s - jnp.where(m == -jnp.inf, 0.0, m))
        """,
    "isfinite": """
        s = jnp.where(mask, s, -jnp.inf)
        m = s.max(axis=-1, keepdims=True)
        m = jnp.where(jnp.isfinite(m), m, 0.0)
        o_ref[...] = jnp.exp(s - m)
        """,
    "maximum bounded below": """
        s = jnp.where(mask, s, -jnp.inf)
        o_ref[...] = jnp.exp(s - jnp.maximum(s.max(axis=-1, keepdims=True), -1e30))
        """,
    "masked again": """
        s = jnp.where(mask, s, -jnp.inf)
        p = jnp.exp(s - s.max(axis=-1, keepdims=True))
        o_ref[...] = jnp.where(mask, p, 0.0)
        """,
    "nan_to_num": """
        s = jnp.where(mask, s, -jnp.inf)
        o_ref[...] = jnp.nan_to_num(jnp.exp(s - s.max(axis=-1, keepdims=True)))
        """,
    "rows without keys replaced": """
        s = jnp.where(mask, s, -jnp.inf)
        p = jnp.exp(s - s.max(axis=-1, keepdims=True))
        total = p.sum(axis=-1, keepdims=True)
        o_ref[...] = jnp.where(total > 0, p / total, 0.0)
        """,
    "finite start": """
        def body(i, carry):
            m_prev, l_prev = carry
            t = jnp.where(mask, s, -jnp.inf)
            m = jnp.maximum(m_prev, t.max(axis=-1, keepdims=True))
            return m, l_prev * jnp.exp(m_prev - m) + jnp.exp(t - m).sum(axis=-1, keepdims=True)
        m, l = lax.fori_loop(0, 4, body, (jnp.full((8, 1), -1e30), jnp.zeros((8, 1))))
        o_ref[...] = jnp.broadcast_to(l, (8, 128))
        """,
    "infinite start, finite scores": """
        def body(i, carry):
            m_prev, l_prev = carry
            m = jnp.maximum(m_prev, s.max(axis=-1, keepdims=True))
            return m, l_prev * jnp.exp(m_prev - m) + jnp.exp(s - m).sum(axis=-1, keepdims=True)
        m, l = lax.fori_loop(0, 4, body, (jnp.full((8, 1), -jnp.inf), jnp.zeros((8, 1))))
        o_ref[...] = jnp.broadcast_to(l, (8, 128))
        """,
    "causal": """
        rows = lax.broadcasted_iota(jnp.int32, (8, 128), 0)
        columns = lax.broadcasted_iota(jnp.int32, (8, 128), 1)
        s = jnp.where(rows >= columns, s, -jnp.inf)
        o_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))
        """,
    "columns of a padded row": """
        s = jnp.where(lax.broadcasted_iota(jnp.int32, (8, 128), 1) < 100, s, -jnp.inf)
        o_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))
        """,
    "maximum of something else": "t = jnp.where(mask, s, -jnp.inf)\no_ref[...] = jnp.exp(t - s.max(-1, keepdims=True))",
}


@pytest.mark.parametrize("name", FINE)
def test_fine(name: str) -> None:
    assert severities(FINE[name]) == []


def test_lengths_are_a_hint() -> None:
    body = """
    columns = lax.broadcasted_iota(jnp.int32, (8, 128), 1)
    n = len_ref[0]
    s = jnp.where((columns < n) & (columns >= 4), s, -jnp.inf)
    o_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))
    """
    code = module(body).replace("def run(x, mask, n):", "def run(x, mask):\n    n = jnp.zeros((1,), jnp.int32)")
    assert [finding.severity.value for finding in lint(code, select="PAL417")] == ["info"]


def test_fix_keeps_half_precision_finite() -> None:
    code = module(NAN["plain"]).replace("s = x_ref[...]", "s = x_ref[...].astype(jnp.float16)")
    assert "jnp.where(mask, s, -6e4)" in fixed(code, select="PAL417")
    assert "jnp.where(mask, 0.0, -1e30)" in fixed(module(NAN["added"]), select="PAL417")


@pytest.mark.parametrize(
    ("other", "is_fixed"),
    [
        ("s = jnp.where(window, s, -1e9)", True),
        ("s = jnp.where(window, s * 0.125, 0.0) + x_ref[...]", True),
        ("s = jnp.where(window, s, MASK_VALUE)", False),
        ("s = jnp.where(window, s, -jnp.inf)", False),
        ("s = jnp.where(window, s, VALUE_OF_THE_CALLER) * 0.125", False),
        ("s = jnp.where(window, s, len_ref[1])", False),
        ("s = s + jnp.where(window, 0.0, jnp.full_like(s, MASK_VALUE))", False),
        ("s = lax.select(window, s, jnp.full_like(s, VALUE_OF_THE_CALLER))", False),
    ],
)
def test_no_fix_where_another_mask_may_be_lower(other: str, is_fixed: bool) -> None:
    """Its values would be under the finite one: a row that it masks attends to what must not be there."""
    body = f"window = x_ref[...] > 0\n{other}\n{NAN['plain']}"
    code = module(body).replace("NEG_INF", "from caller import VALUE_OF_THE_CALLER\nNEG_INF")
    assert severities(body) == ["warning"]
    assert ("jnp.where(mask, s, -1e30)" in fixed(code, select="PAL417")) is is_fixed


def test_length_from_a_ref_of_unknown_shape() -> None:
    """All rows of a block end at one length: they are masked entirely only where it is 0."""
    body = """
        columns = lax.broadcasted_iota(jnp.int32, (8, 128), 1)
        s = jnp.where(columns < len_ref[{}], s, -jnp.inf)
        o_ref[...] = jnp.exp(s - s.max(axis=-1, keepdims=True))
    """
    assert severities(body.format("pl.program_id(0)")) == ["info"]
    assert severities(body.format("0, :")) == ["warning"]


_POSITIONS = """\
rows = pl.program_id(0) * 8 + lax.broadcasted_iota(jnp.int32, (8, 128), 0)
cols = {start}lax.broadcasted_iota(jnp.int32, (8, 128), 1)
s = jnp.where({mask})
p = {softmax}
o_ref[...] = p{more}
"""
_OF_ROWS = {"start": "", "mask": "rows > cols, s, -1e30", "softmax": "jax.nn.softmax(s, axis=-1)", "more": ""}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"mask": "cols < rows, s, -jnp.inf"},
        {"mask": "cols >= rows, -1e30, s"},
        {"start": "128 * pl.program_id(0) + "},
        {"softmax": "jnp.exp(s - s.max(axis=-1, keepdims=True))"},
        {"softmax": "attend(s)"},
    ],
)
def test_a_mask_that_hides_a_row_from_itself(given: dict[str, str]) -> None:
    assert severities(_POSITIONS.format(**{**_OF_ROWS, **given})) == ["warning"]


@pytest.mark.parametrize(
    "given",
    [
        {"mask": "rows >= cols, s, -1e30"},
        {"mask": "cols > rows, MASK_VALUE, s"},
        {"mask": "rows + 1 > cols, s, -1e30"},
        {"mask": "rows > cols, s, 0.0"},
        {"mask": "rows > cols, s, -1.0"},
        {"softmax": "jax.nn.softmax(s, axis=0)"},
        {"softmax": "jnp.exp(s - s.max(axis=0, keepdims=True))"},
        {"softmax": "jnp.exp(s - jnp.maximum(s.max(axis=-1, keepdims=True), x_ref[:, :1]))"},  # the column of its own
        {"more": "\no_ref[...] = jnp.where(rows == 0, 0.0, p)"},
        {"start": "x_ref[0, 0].astype(jnp.int32) + "},
    ],
)
def test_a_first_row_that_sees_something(given: dict[str, str]) -> None:
    assert severities(_POSITIONS.format(**{**_OF_ROWS, **given})) == []
