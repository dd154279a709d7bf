"""Arguments of array functions: shapes and axes, by name or position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.values import (
    NONE,
    Array,
    Const,
    Dictionary,
    Dim,
    Seq,
    Shape,
    Sym,
    Value,
    as_tuple,
    shape_of,
)
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.syntax import nodes

    Model = Callable[[Tracer, str, Arguments, nodes.Node], Value]  # what a function does, given its name

Keywords = dict[str, Value]


def shape(value: Value) -> Shape | None:
    """The shape of an operand: numbers have none of dimensions. None is no operand, and stands for one to come."""
    if isinstance(value, Array):
        return value.shape
    return () if isinstance(value, Const | Sym) and value != NONE else None


def argument(args: list[Value], keywords: Keywords, name: str, position: int) -> Value | None:
    """The argument passed as `name` or at `position`; None where it was not passed, or None was."""
    value = keywords.get(name, args[position] if position < len(args) else None)
    return None if value == NONE else value


def shape_argument(value: Value | None) -> Shape | None:
    """A shape argument; a symbol may be a whole shape or one dimension."""
    return None if value is None or isinstance(value, Sym) else shape_of(value)


def axes(value: Value | None, rank: int) -> tuple[int, ...] | None:
    """Normalised axes, of one number or a sequence of them; None where they are not known."""
    if isinstance(value, Seq) and value.open:
        return None
    found = []
    for item in as_tuple(value):
        if not isinstance(item, Const) or not isinstance(item.value, int) or not -rank <= item.value < max(rank, 1):
            return None
        found.append(item.value % rank if rank else 0)
    return tuple(found)


def unknown_of_rank(shape: Shape | None) -> Shape | None:
    return None if shape is None else (None,) * len(shape)


def broadcast(shapes: list[Shape | None]) -> Shape | None:
    """The shape that these broadcast to; None where a rank is not known or they do not fit."""
    result: tuple[Dim, ...] = ()
    for shape in shapes:
        if shape is None:
            return None
        longer, shorter = (result, shape) if len(result) >= len(shape) else (shape, result)
        merged = list(longer)
        for offset, size in enumerate(shorter, len(longer) - len(shorter)):
            merged[offset] = _broadcast_dim(longer[offset], size)
        result = tuple(merged)
    return result


def _broadcast_dim(a: Dim, b: Dim) -> Dim:
    if a == 1:
        return b
    if b == 1 or a == b:
        return a
    if isinstance(a, int):
        return a  # the other is unknown, and must be equal or 1
    return b if isinstance(b, int) else None


def leaves(value: Value) -> Iterator[Value]:
    """The values in nested tuples and lists."""
    if isinstance(value, Seq):
        for item in value.items:
            yield from leaves(item)
    else:
        yield value


def tree_leaves(value: Value) -> Iterator[Value]:
    """The leaves of a tree as jax has them: the values in nested tuples, lists and dictionaries."""
    if isinstance(value, Seq):
        for item in value.items:
            yield from tree_leaves(item)
    elif isinstance(value, Dictionary):
        for _, item in value.items:
            yield from tree_leaves(item)
    else:
        yield value


def as_may_be(result: Value, operands: list[Value]) -> Value:
    """The result outside kernels as far as it is known: a symbolic operand may be an array of any rank."""
    named = [leaf for operand in operands for leaf in leaves(operand) if isinstance(leaf, Sym)]
    joined = any(isinstance(operand, Seq) for operand in operands)
    if not named or not isinstance(result, Array) or (result.shape != () and not joined):
        return result
    return evolve(result, shape=None, named=named[0] if operands == named[:1] else None)
