"""Layout of rank-1 values in TPU registers: along the 128 lanes, or along the sublanes as row sums are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.facts.loaded_values import load_of
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.values import ELLIPSIS, NONE, Array, Const, Seq, Shape, Slice, Value
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from pallas_lint.kernels.model.trace import KernelTrace, Op

_REDUCTIONS = frozenset(
    "sum max min prod amax amin mean any all argmax argmin reduce_sum reduce_max reduce_min".split()
)
_IOTAS = frozenset(("arange", "iota", "linspace"))
_FILLED = frozenset("full ones zeros full_like ones_like zeros_like".split())
_ELEMENTWISE = frozenset(
    "add subtract multiply true_divide divide floor_divide remainder mod power maximum minimum where select_n astype"
    " equal not_equal less less_equal greater greater_equal eq ne lt le gt ge logical_and logical_or logical_not"
    " logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not invert abs absolute negative exp log square isnan"
    " isinf isfinite is_finite convert_element_type right_shift left_shift clip sign floor sqrt rsqrt"
    " tanh and_ or_ not_ xor sub mul div rem neg max min bool_".split()
)
_MAX_DEPTH = 16


@frozen
class VectorLayout:
    """`along` None: not known. `sure` is False where a rank is taken from how the code indexes."""

    along: Literal["lanes", "sublanes", "matrix"] | None
    sure: bool = True


@memoize_by_identity
def layout_of(value: Value, trace: KernelTrace | None, depth: int = 0) -> VectorLayout:
    """The layout of the value; "matrix" for rank 2 and more."""
    if not isinstance(value, Array) or depth > _MAX_DEPTH:
        return VectorLayout(None)
    if value.shape is not None and len(value.shape) > 1:
        return VectorLayout("matrix")
    load = load_of(value, trace)
    if load is not None:
        return _taken(load.ref.shape, load.index)
    op = value.origin
    if op is None or not op.args:
        return VectorLayout(None)
    short = op.short
    if short in _IOTAS:
        return VectorLayout("lanes")
    if short in _REDUCTIONS:
        return _reduced(op)
    if short == "__getitem__" and isinstance(op.args[0], Array):
        return _taken(op.args[0].shape, op.args[1])
    if short not in _ELEMENTWISE:
        return VectorLayout(None)
    return _combined([layout_of(operand, trace, depth + 1) for operand in op.args if _has_layout(operand)])


def made_by_logic(value: Value) -> bool:
    """Whether a mask is put together from masks: `a & b`, `~a`."""
    if not isinstance(value, Array) or value.origin is None or value.dtype != "bool":
        return False
    return value.origin.short.startswith(("bitwise_", "logical_", "invert", "and_", "or_", "not_"))


def _has_layout(value: Value) -> bool:
    """Scalars and filled vectors take the layout of what they meet."""
    if not isinstance(value, Array) or value.shape == ():
        return False
    return value.origin is None or value.origin.short not in _FILLED


def _combined(parts: list[VectorLayout]) -> VectorLayout:
    found = {part.along for part in parts}
    if not found or None in found:
        return VectorLayout(None)
    along = found.pop() if len(found) == 1 else "lanes" if found == {"lanes", "sublanes"} else "matrix"
    return VectorLayout(along, all(part.sure for part in parts))


def _taken(shape: Shape | None, index: Value) -> VectorLayout:
    """The layout of `x[index]`."""
    parts = index.items if isinstance(index, Seq) and not index.open else (index,)
    parts = tuple(part for part in parts if part != NONE)
    if ELLIPSIS in parts:
        if shape is None or len(parts) != 1:
            return VectorLayout(None)
        return VectorLayout("lanes" if len(shape) == 1 else "matrix")
    sure = shape is not None
    rank = len(parts) if shape is None else len(shape)
    if rank == 1 and shape is None:
        return VectorLayout(None)  # `x[0]` of a matrix, or `x[:8]` of a vector
    kept = [at for at in range(rank) if at >= len(parts) or isinstance(parts[at], Slice)]
    if any(isinstance(part, Array) and part.shape != () for part in parts):
        return VectorLayout(None)
    if len(kept) != 1:
        return VectorLayout("matrix" if kept else None, sure)
    return VectorLayout("lanes" if kept[0] == rank - 1 else "sublanes", sure)


def _reduced(op: Op) -> VectorLayout:
    value, axis = op.args[0], op.argument("axis", 1) or op.argument("axes", 1)
    if not isinstance(value, Array) or not isinstance(axis, Const) or type(axis.value) is not int:
        return VectorLayout(None)
    if op.argument("keepdims") not in (None, Const(False)):
        return VectorLayout("matrix", value.shape is not None)
    if value.shape is not None and len(value.shape) != 2:
        return VectorLayout("matrix" if len(value.shape) > 2 else None)
    if axis.value in (-1, 1):
        return VectorLayout("sublanes", value.shape is not None)
    return VectorLayout("lanes", value.shape is not None)
