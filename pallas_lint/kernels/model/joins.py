"""Joins of abstract values: after branches, in loops, and for names that are bound twice."""

from __future__ import annotations

from pallas_lint.kernels.model.kinds import join_elements
from pallas_lint.kernels.model.values import (
    UNKNOWN,
    Array,
    Choice,
    OneOf,
    Ref,
    Seq,
    Shape,
    Unknown,
    Value,
    dim,
    from_dim,
    options,
)
from pallas_lint.records import evolve

_MAX_OPTIONS = 4


def join(first: Value, second: Value, *, looped: bool = False) -> Value:
    """The value that is one of the two; `looped`: or what further iterations make of it."""
    if first is second or first == second:
        return first
    if isinstance(first, Unknown) or isinstance(second, Unknown):
        return UNKNOWN
    if isinstance(first, Array) and isinstance(second, Array):
        return join_arrays(first, second, looped=looped)
    if isinstance(first, Ref) and isinstance(second, Ref) and first.buffer == second.buffer:
        same = evolve(first, view=True, shape=_join_shapes(first.shape, second.shape, looped))
        return evolve(same, dtype=join_elements(first.element, second.element))
    if isinstance(first, Seq) and isinstance(second, Seq) and first.kind == second.kind:
        return _join_sequences(first, second, looped)
    merged: list[Value] = []
    for option in (*options(first), *options(second)):
        if option not in merged:
            merged.append(option)
    open_ = looped or any(isinstance(side, OneOf) and side.open for side in (first, second))
    return OneOf(tuple(merged), open=open_) if len(merged) <= _MAX_OPTIONS else UNKNOWN


def part_of_choice(result: Value, owner: OneOf, part: str) -> Value:
    """What the joined parts of a value's options are: a part of the same choice, each time that it is read."""
    if not isinstance(result, OneOf):
        return result
    choice = Choice(owner.choice.of, f"{owner.choice.part}{part}")
    return evolve(result, choice=choice, open=result.open or owner.open)


def chosen_anew(value: Value) -> Value:
    """What the same choice gives at another call, whose arguments may differ: another one of the options."""
    if isinstance(value, OneOf):
        return evolve(value, choice=Choice())
    return evolve(value, items=tuple(map(chosen_anew, value.items))) if isinstance(value, Seq) else value


def join_arrays(first: Array, second: Array, *, looped: bool) -> Array:
    element = join_elements(first.element, second.element)
    if first.dtype == second.dtype and evolve(second, dtype=first.element) == first:
        # They are equal but for better known kinds of one: the first is returned, as for equal values.
        return first if element == first.element else evolve(first, dtype=element)
    return Array(
        _join_shapes(first.shape, second.shape, looped),
        element,
        first.weak and second.weak and first.element == second.element,
        first.origin if first.origin is second.origin else None,
        host=first.host and second.host,
    )


def _join_shapes(first: Shape | None, second: Shape | None, looped: bool) -> Shape | None:
    if first is None or second is None or len(first) != len(second):
        return None
    if looped:
        return tuple(a if a == b else None for a, b in zip(first, second, strict=True))
    return tuple(a if a == b else dim(join(from_dim(a), from_dim(b))) for a, b in zip(first, second, strict=True))


def _join_sequences(first: Seq, second: Seq, looped: bool) -> Value:
    if len(first.items) == len(second.items) and not first.open and not second.open:
        items = tuple(join(a, b, looped=looped) for a, b in zip(first.items, second.items, strict=True))
        return Seq(items, first.kind)
    common = []
    for a, b in zip(first.items, second.items, strict=False):
        common.append(join(a, b, looped=looped))
    return Seq(tuple(common), first.kind, open=True)
