"""Divisors of an index: those that certainly divide it, and those that Mosaic is able to prove.

Mosaic proves alignment from the operations that made the index: constants, products, sums, quotients of unknown
numbers (which prove nothing), and `pl.multiple_of`. Measured with the TPU compilers of jax 0.4.35 to 0.12.0.1.
"""

from __future__ import annotations

from collections.abc import Collection
from math import gcd, lcm
from typing import Literal

from pallas_lint.identity import ById
from pallas_lint.kernels.model.identity_memo import memoize_by_identity
from pallas_lint.kernels.model.known_names import PROGRAM_ID, is_integer
from pallas_lint.kernels.model.trace import LOOP_INDEX, Access, KernelTrace, Op
from pallas_lint.kernels.model.values import Array, Const, Value
from pallas_lint.syntax import nodes

_MULTIPLY = frozenset(("jax.numpy.multiply", "jax.lax.mul"))
_ADD = frozenset(("jax.numpy.add", "jax.numpy.subtract", "jax.lax.add", "jax.lax.sub"))
_DIVIDE = frozenset(("jax.numpy.floor_divide", "jax.lax.div"))
_SAME = frozenset(
    (
        "jax.numpy.negative", "jax.lax.neg", "jax.numpy.positive", "jax.numpy.astype",
        "jax.lax.convert_element_type", "jax.numpy.asarray", "jax.numpy.int32",
    )
)  # fmt: skip
# One of the operands, or something between them: a common divisor stays one, but Mosaic does not see it.
_UNSEEN = frozenset(
    ("jax.numpy.maximum", "jax.lax.max", "jax.numpy.clip", "jax.lax.clamp", "jax.numpy.abs", "jax.lax.abs")
)
# As those, and in some versions Mosaic sees it.
_SEEN_AT_TIMES = frozenset(
    (
        "jax.numpy.minimum", "jax.lax.min", "jax.numpy.remainder", "jax.numpy.mod", "jax.lax.rem",
        "jax.numpy.where", "jax.lax.select",
    )
)  # fmt: skip
_SHIFT = frozenset(("jax.numpy.left_shift", "jax.lax.shift_left"))
_MASK = frozenset(("jax.numpy.bitwise_and", "jax.lax.bitwise_and"))
_MAX_DEPTH = 12

Proof = Literal["sums", "products"]  # how far Mosaic sees


def loaded_values(trace: KernelTrace, space: str | None = None) -> frozenset[ById]:
    """The identities of what the kernel loads (from one memory space): of these numbers nothing is known."""
    return frozenset(
        ById(event.value)
        for event in trace.events
        if isinstance(event, Access) and event.kind == "load" and isinstance(event.value, Array)
        if space is None or event.ref.space == space
    )


def proven_divisor(value: Value, loaded: Collection[ById], *, sums: bool = True) -> int | None:
    """The largest number that Mosaic can prove to divide the value; 0 for zero itself.

    None where that is not known: the value hangs on Python values without a number, or came from code that is not seen.
    `sums`: it sees through sums, which the releases up to jax 0.6 did not.
    """
    return _divisor(value, loaded, proof="sums" if sums else "products", depth=0)


def true_divisor(value: Value, loaded: Collection[ById]) -> int | None:
    """A number that certainly divides the value, provable for Mosaic or not; 0 for zero, None where none is known."""
    return _divisor(value, loaded, proof=None, depth=0)


@memoize_by_identity
def _divisor(value: Value, loaded: Collection[ById], *, proof: Proof | None, depth: int) -> int | None:
    if isinstance(value, Const):
        return abs(value.value) if isinstance(value.value, int) and not isinstance(value.value, bool) else None
    if not isinstance(value, Array) or value.shape not in ((), None) or depth > _MAX_DEPTH:
        return None
    if ById(value) in loaded:
        return 1
    op = value.origin
    if op is None:
        return None
    if op.name == PROGRAM_ID:
        return 1
    if op.name == LOOP_INDEX:
        return 1 if is_counted(op) else None
    if op.name == "jax.experimental.pallas.multiple_of":
        return _promised(op, loaded, proof=proof, depth=depth)
    operands = [_divisor(operand, loaded, proof=proof, depth=depth + 1) for operand in op.args]
    if op.name in ("jax.numpy.where", "jax.lax.select"):
        operands = operands[1:]
    return _combined(op, operands, proof=proof)


def _combined(op: Op, operands: list[int | None], *, proof: Proof | None) -> int | None:
    known = [operand for operand in operands if operand is not None]
    if not known or len(known) < len(operands):
        # One unknown factor or summand can make up for anything.
        return None
    common = gcd(*known)
    if op.name in _MULTIPLY:
        promised = any(_is_promise(operand) for operand in op.args)
        return None if len(known) != 2 or (promised and proof == "products") else known[0] * known[1]
    if proof == "products" and (op.name in _ADD or op.name in _SEEN_AT_TIMES or op.name.endswith(("negative", "neg"))):
        return 1
    if op.name in _ADD or op.name in _SAME:
        return common
    if op.name in _DIVIDE:
        return 1 if known[0] == 1 else None
    if op.name in _SEEN_AT_TIMES:
        return common if not proof or common == 1 else None
    if op.name in _UNSEEN:
        return 1 if proof else common
    if op.name in _SHIFT and len(op.args) == 2 and isinstance(op.args[1], Const):
        return 1 if proof else known[0] << min(int(op.args[1].value), 16)
    if op.name in _MASK:
        masks = [arg.value for arg in op.args if isinstance(arg, Const) and arg.value < 0]
        return 1 if proof else masks[0] & -masks[0] if masks else None
    return None


def _promised(op: Op, loaded: Collection[ById], *, proof: Proof | None, depth: int) -> int | None:
    """The divisor that `pl.multiple_of(x, n)` declares, combined with the known divisors of x."""
    promise = op.argument("values", 1)
    if not isinstance(promise, Const) or not isinstance(promise.value, int) or promise.value <= 0:
        return None
    inner = _divisor(op.args[0], loaded, proof=proof, depth=depth + 1) if op.args else None
    return lcm(inner, promise.value) if inner else promise.value


def _is_promise(value: Value) -> bool:
    return isinstance(value, Array) and value.origin is not None and value.origin.short == "multiple_of"


def is_counted(op: Op) -> bool:
    """Whether the loop certainly counts in steps of one at run time: not unrolled, and more than once."""
    node = op.site.node
    node = node.decorator if isinstance(node, nodes.Decorator) else node
    if isinstance(node, nodes.Call):
        if node.keyword("unroll") is not None or any(argument.star for argument in node.args):
            return False
        if len([argument for argument in node.args if argument.keyword is None]) > 4:
            return False
    bounds = [bound.value for bound in op.args if is_integer(bound)]
    return len(bounds) < 2 or bounds[1] - bounds[0] > 1
