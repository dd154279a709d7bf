"""Joins of abstract values: after branches, in loops, and for names that are bound twice."""

from __future__ import annotations

from pallas_lint.kernels.model.kinds import join_elements
from pallas_lint.kernels.model.values import UNKNOWN, Array, OneOf, Ref, Seq, Shape, Unknown, Value, options
from pallas_lint.records import evolve

_MAX_OPTIONS = 4


def join(first: Value, second: Value) -> Value:
    """The value that is one of the two."""
    if first is second or first == second:
        return first
    if isinstance(first, Unknown) or isinstance(second, Unknown):
        return UNKNOWN
    if isinstance(first, Array) and isinstance(second, Array):
        return join_arrays(first, second)
    if isinstance(first, Ref) and isinstance(second, Ref) and first.buffer == second.buffer:
        same = evolve(first, view=True, shape=_join_shapes(first.shape, second.shape))
        return evolve(same, dtype=join_elements(first.element, second.element))
    if isinstance(first, Seq) and isinstance(second, Seq) and first.kind == second.kind:
        return _join_sequences(first, second)
    merged: list[Value] = []
    for option in (*options(first), *options(second)):
        if option not in merged:
            merged.append(option)
    return OneOf(tuple(merged)) if len(merged) <= _MAX_OPTIONS else UNKNOWN


def join_arrays(first: Array, second: Array) -> Array:
    element = join_elements(first.element, second.element)
    if first.dtype == second.dtype and evolve(second, dtype=first.element) == first:
        # They are equal but for better known kinds of one: the first is returned, as for equal values.
        return first if element == first.element else evolve(first, dtype=element)
    return Array(
        _join_shapes(first.shape, second.shape),
        element,
        first.weak and second.weak and first.element == second.element,
        first.origin if first.origin is second.origin else None,
        host=first.host and second.host,
    )


def _join_shapes(first: Shape | None, second: Shape | None) -> Shape | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(a if a == b else None for a, b in zip(first, second, strict=True))


def _join_sequences(first: Seq, second: Seq) -> Value:
    if len(first.items) == len(second.items) and not first.open and not second.open:
        items = tuple(join(a, b) for a, b in zip(first.items, second.items, strict=True))
        return Seq(items, first.kind)
    common = []
    for a, b in zip(first.items, second.items, strict=False):
        common.append(join(a, b))
    return Seq(tuple(common), first.kind, open=True)
