"""Partly known dtypes: which one it is, or of which kinds it may be if its width is not known.

`x / 2` is a float whatever integer or float `x` is. Widths depend on the operands and on jax's flag for 64 bits; kinds
depend on the operands' kinds alone, so that they are known far more often.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, reduce

Kinds = frozenset[str]  # of "bool", "int", "float", "complex" and "other", for random keys and semaphores
# The dtype as jax prints it in avals, the kinds that it may be of, or None: anything.
Element = str | Kinds | None

INTEGER: Kinds = frozenset({"int"})
FLOATING: Kinds = frozenset({"float"})
INEXACT: Kinds = frozenset({"float", "complex"})
ANY: Kinds = frozenset({"bool", "int", "float", "complex", "other"})
_RANK = {"bool": 0, "int": 1, "float": 2, "complex": 3}
_OF_LETTER = {"i": "int", "u": "int", "f": "float", "c": "complex"}


def kinds_of(element: Element) -> Kinds:
    """The kinds that a dtype of which this is known may be of."""
    if element is None:
        return ANY
    return _kinds_of_dtype(element) if isinstance(element, str) else element


@cache
def _kinds_of_dtype(dtype: str) -> Kinds:
    if dtype in ("bool", "bf16"):
        return FLOATING if dtype == "bf16" else frozenset({"bool"})
    return frozenset({_OF_LETTER.get(dtype[0], "other") if dtype[1:2].isdigit() else "other"})


def element_of_kinds(kinds: Kinds) -> Element:
    """The dtype of one of these kinds, as far as known; there is one dtype of booleans."""
    if kinds == {"bool"}:
        return "bool"
    return None if kinds == ANY or not kinds else kinds


def described(element: Element) -> str:
    """The text for messages: the dtype, or "integer or float". Complex numbers are omitted where it may be a float."""
    if isinstance(element, str):
        return element
    kinds = kinds_of(element)
    meant = kinds - {"complex"} if "float" in kinds else kinds
    return " or ".join("integer" if kind == "int" else kind for kind in _RANK if kind in meant)


def exact(element: Element) -> str | None:
    """The dtype, where it is known which one it is."""
    return element if isinstance(element, str) else None


def join_elements(first: Element, second: Element) -> Element:
    """The join of two dtypes: of the kinds of either."""
    return first if first == second else element_of_kinds(kinds_of(first) | kinds_of(second))


def differ(first: Element, second: Element) -> bool:
    """Whether these are certainly not one dtype."""
    if isinstance(first, str) and isinstance(second, str):
        return first != second
    return not kinds_of(first) & kinds_of(second)


def promoted(operands: Iterable[Kinds]) -> Kinds:
    """The kinds that operands of these kinds promote to: the higher one; keys and semaphores meet no numbers."""
    return reduce(_higher, operands)


@cache
def _higher(first: Kinds, second: Kinds) -> Kinds:
    numbers = {max(a, b, key=_RANK.__getitem__) for a in first - {"other"} for b in second - {"other"}}
    return frozenset(numbers) | (first & second & {"other"})


def mapped(element: Element, **images: str) -> Element:
    """The dtype, as far as known, after converting numbers of some kinds to others: `bool="int"`."""
    kinds = kinds_of(element)
    return element_of_kinds(frozenset(images.get(kind, kind) for kind in kinds)) if kinds & set(images) else element
