"""Kinds of dtypes: how they join and promote, and which branches on a dtype they decide."""

from __future__ import annotations

import itertools

import pytest

from pallas_lint.kernels.model.dtypes import canonical, promote
from pallas_lint.kernels.model.kinds import ANY, FLOATING, INEXACT, INTEGER, Element, differ, join_elements, kinds_of
from pallas_lint.testing import lint
from tests.rules.kernels import launch

DTYPES = ("bool", "i4", "i8", "i32", "u8", "u32", "f16", "bf16", "f32", "f64", "f8_e5m2", "c64")
ELEMENTS: tuple[Element, ...] = (*DTYPES, INTEGER, FLOATING, INEXACT, INTEGER | INEXACT, None)


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [("bf16", "float"), ("f8_e4m3fn", "float"), ("u4", "int"), ("bool", "bool"), ("c64", "complex"),
     ("semaphore", "other"), ("barrier", "other"), ("key<fry>", "other")],
)  # fmt: skip
def test_of_a_dtype(dtype: str, kind: str) -> None:
    assert kinds_of(dtype) == {kind}


def may_be(element: Element) -> set[str]:
    return {dtype for dtype in DTYPES if dtype == element or not isinstance(element, str)} & {
        dtype for dtype in DTYPES if kinds_of(dtype) <= kinds_of(element)
    }


@pytest.mark.parametrize(("first", "second"), list(itertools.product(ELEMENTS, ELEMENTS)))
def test_what_is_less_known_holds_for_all_that_it_may_be(first: Element, second: Element) -> None:
    joined, (result, _) = join_elements(first, second), promote([(first, False), (second, False)])
    assert may_be(first) | may_be(second) <= may_be(joined)
    assert differ(first, second) is not bool(may_be(first) & may_be(second))
    for one, other in itertools.product(may_be(first), may_be(second)):
        promoted, _ = promote([(one, False), (other, False)])
        if promoted in DTYPES:
            assert promoted in may_be(result), (one, other)


def test_what_64_bits_change() -> None:
    assert canonical(INTEGER) == INTEGER
    assert canonical(INTEGER, x64=True) == INTEGER | FLOATING  # uint64 and int64
    assert canonical(FLOATING, x64=True) == FLOATING
    assert promote([(None, False), ("f64", True)])[0] == INEXACT
    assert kinds_of(promote([(None, False), (None, False)])[0]) == ANY


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("jnp.issubdtype(x.dtype, jnp.integer)", False),
        ("not jnp.issubdtype(x.dtype, jnp.inexact)", False),
        ("jnp.issubdtype(x.dtype, np.bool_)", False),
        ("x.dtype == jnp.int32", False),
        ("jnp.int8 == x.dtype", False),
        ("not x.dtype != jnp.bool_", False),
        ("jnp.issubdtype(x.dtype, jnp.number)", True),
        ("x.dtype != jnp.int32", True),
        # what is not known: the width, complex numbers, and what numpy thinks of bfloat16
        ("jnp.issubdtype(x.dtype, jnp.floating)", None),
        ("x.dtype == jnp.float32", None),
        ("jnp.issubdtype(x.dtype, jnp.float32)", None),
        ("np.issubdtype(x.dtype, np.inexact)", None),
        ("jnp.issubdtype(x_ref.dtype, jnp.integer)", None),
        ("x_ref.dtype == jnp.int32", None),
    ],
)
def test_branches(condition: str, taken: bool | None) -> None:
    """A ref that is stored itself is an error where the code runs, a warning where it may run."""
    body = f"x = x_ref[...] / 2\nif {condition}:\n    o_ref[...] = x_ref"
    severities = [f.severity.value for f in lint(launch(body, prelude="import numpy as np"), select="PAL506")]
    assert severities == {True: ["error"], None: ["warning"], False: []}[taken]
