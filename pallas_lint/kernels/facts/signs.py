"""Values that are certainly not negative."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.dtypes import bits, is_signed
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS, PROGRAM_ID
from pallas_lint.kernels.model.values import NONE, Array, Const, OneOf, Value

if TYPE_CHECKING:
    from pallas_lint.kernels.model.trace import Op

_COUNTS = frozenset({PROGRAM_ID, NUM_PROGRAMS, "jax.lax.iota", "jax.lax.broadcasted_iota", "jax.lax.axis_index"})
# Not negative if both operands are not, ...
_BOTH = frozenset("add multiply mul minimum min floor_divide true_divide div divide bitwise_or".split())
# ... if one of them is not, ...
_EITHER = frozenset("maximum max bitwise_and".split())
# ... or if the first is not.
_FIRST = frozenset(
    "rem astype convert_element_type reshape broadcast_to expand_dims squeeze ravel transpose sum multiple_of"
    " right_shift __getitem__ abs absolute square".split()
)
_MAX_DEPTH = 12


@memoize_by_identity
def is_non_negative(value: Value, depth: int = 0) -> bool:
    """Whether the value cannot be below 0: grid indices, iotas, unsigned values, and what 32 bits make of these."""
    if isinstance(value, Const):
        return isinstance(value.value, int | float) and value.value >= 0
    if isinstance(value, OneOf):
        return all(is_non_negative(option, depth) for option in value.options)
    if not isinstance(value, Array):
        return False
    if value.dtype is not None and value.dtype[0] == "u":
        return True
    if value.dtype is not None and is_signed(value.dtype) and bits(value.dtype) < 32:
        return False  # a sum or a cast may have wrapped around
    return value.origin is not None and depth < _MAX_DEPTH and _gives_none(value.origin, depth + 1)


def _gives_none(op: Op, depth: int) -> bool:
    short = op.short
    if op.name in _COUNTS:
        return True
    if short == "arange":
        start = op.args[0] if len(op.args) > 1 else op.argument("start") or Const(0)
        return is_non_negative(start, depth) and (op.argument("step", 2) in (None, NONE))
    if short == "where" and len(op.args) == 3:
        return all(is_non_negative(value, depth) for value in op.args[1:])
    if short in ("mod", "remainder") and len(op.args) == 2:
        return is_non_negative(op.args[1], depth)  # it floors: the divisor's sign
    if short in _BOTH:
        return len(op.args) == 2 and all(is_non_negative(value, depth) for value in op.args)
    if short in _EITHER:
        return any(is_non_negative(value, depth) for value in op.args[:2])
    return short in _FIRST and bool(op.args) and is_non_negative(op.args[0], depth)
