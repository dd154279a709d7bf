"""Rewrites of the last element of a `cumsum`, which is a sum, for backends that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import Array
from pallas_lint.syntax import Site, nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from pallas_lint.checker.context import Context
    from pallas_lint.finding import Fix
    from pallas_lint.kernels.model.trace import Op

_RUNNING = frozenset({"jax.numpy.cumsum", "jax.lax.cumsum"})


def as_sum(op: Op, context: Context, *, safe: bool) -> Fix | None:
    """`jnp.cumsum(x, -1)[:, -1:]` as `jnp.sum(x, -1, keepdims=True)`; None where it is something else."""
    call, piece = op.site.node, op.site.piece
    if op.name not in _RUNNING or not isinstance(call, nodes.Call) or len(op.args) + len(op.keywords) != 2:
        return None
    given, axis = op.argument("a", 0) or op.argument("operand", 0), integer(op.argument("axis", 1))
    shape = given.shape if isinstance(given, Array) else None
    if shape is None or axis is None or not -len(shape) <= axis < len(shape):
        return None
    around = (node for statement in piece.body for node in walk(statement))
    part = next((node for node in around if isinstance(node, nodes.Subscript) and node.value is call), None)
    keeps = None if part is None else _takes_last(part, axis % len(shape), len(shape))
    if part is None or keeps is None:
        return None
    spelled, imports = context.spell("jax.numpy.sum", context.module_of(op.site))
    summed = next((each.value for each in call.args if each.keyword is None or each.keyword.value != "axis"), None)
    if summed is None:
        return None
    text = f"{spelled}({piece.code(summed)}, axis={axis}{', keepdims=True' if keeps else ''})"
    edit = context.replace(Site(piece, part), text)
    make = context.safe if safe else context.unsafe
    return make(f"take the sum: `{spelled}`", edit, *imports)


def _takes_last(part: nodes.Subscript, axis: int, rank: int) -> bool | None:
    """Whether the last along an axis is taken with (True) or without (False) the axis; None where it is not that."""
    slices: list[nodes.BaseSlice | None] = [each.slice for each in part.slice]  # None: all of a dimension
    dots = [at for at, each in enumerate(slices) if _is_ellipsis(each)]
    if len(dots) > 1 or len(slices) - len(dots) > rank:
        return None
    at = dots[0] if dots else len(slices)
    slices[at : at + len(dots)] = [None] * (rank - len(slices) + len(dots))
    if not all(each is None or _is_whole(each) for number, each in enumerate(slices) if number != axis):
        return None
    last = slices[axis]
    if isinstance(last, nodes.Index):
        return False if _is_minus_one(last.value) else None
    keeps = isinstance(last, nodes.Slice) and last.upper is None and last.step is None and _is_minus_one(last.lower)
    return True if keeps else None


def _is_ellipsis(part: nodes.BaseSlice | None) -> bool:
    return isinstance(part, nodes.Index) and isinstance(part.value, nodes.Ellipsis)


def _is_whole(part: nodes.BaseSlice) -> bool:
    return isinstance(part, nodes.Slice) and (part.lower, part.upper, part.step) == (None, None, None)


def _is_minus_one(node: nodes.BaseExpression | None) -> bool:
    if not isinstance(node, nodes.UnaryOperation) or not isinstance(node.operator, nodes.Minus):
        return False
    return isinstance(node.expression, nodes.Integer) and node.expression.value == "1"
