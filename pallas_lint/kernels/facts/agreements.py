"""Values that jax requires to be of one type and that are not: carries of loops, results of branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.operand_shapes import comes_of_mismatch
from pallas_lint.kernels.model.dtypes import canonical, operand_element
from pallas_lint.kernels.model.kinds import differ, kinds_of
from pallas_lint.kernels.model.values import NONE, Array, Const, Ref, Seq, spelled_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.trace import Agreement
    from pallas_lint.kernels.model.values import Shape, Value

_NUMBERS = (bool, int, float)


def disagreement(agreement: Agreement) -> str | None:
    """How the types of the two values differ, whatever the sizes that are not known; None where they may be one."""
    if agreement.kind == "branches" and any(map(_has_ref, agreement.values)):
        return "a branch returns a ref, which jax refuses"
    return next(_differences(*agreement.values, _SENTENCES[agreement.kind], agreement.kind == "carry"), None)


_SENTENCES = {
    "carry": "the carry is {} as it enters and {} as the body returns it",
    "branches": "one branch returns {} and another {}",
}


def _differences(one: Value, other: Value, sentence: str, carried: bool) -> Iterator[str]:
    if isinstance(one, Seq) and isinstance(other, Seq):
        if one.open or other.open:
            return
        if len(one.items) != len(other.items):
            yield sentence.format(f"{len(one.items)} values", f"{len(other.items)}")
            return
        for at, (left, right) in enumerate(zip(one.items, other.items, strict=True)):
            yield from (f"{found} in part {at}" for found in _differences(left, right, sentence, carried))
    elif (kinds := (_kind(one), _kind(other)))[0] != kinds[1] and None not in kinds:
        yield sentence.format(*kinds)
    elif _is_number(one) and _is_number(other) and not (comes_of_mismatch(one) or comes_of_mismatch(other)):
        yield from _of_arrays(one, other, sentence, carried)


def _of_arrays(one: Value, other: Value, sentence: str, carried: bool) -> Iterator[str]:
    before, after = _shape(one), _shape(other)
    if before is not None and after is not None and shapes_differ(before, after):
        yield sentence.format(spelled_shape(before), spelled_shape(after))
        return
    (first, weak), (second, _) = operand_element(one), operand_element(other)
    if weak and carried:  # the body gives such a carry its type
        return
    first, second = canonical(first), canonical(second)
    if isinstance(first, str) and isinstance(second, str) and differ(first, second) and not _has_other(first, second):
        yield sentence.format(first, second)


def _has_other(first: str, second: str) -> bool:
    return "other" in kinds_of(first) | kinds_of(second)


def _has_ref(value: Value) -> bool:
    return any(map(_has_ref, value.items)) if isinstance(value, Seq) else _kind(value) == "a ref"


def _kind(value: Value) -> str | None:
    """What jax takes a value for that is no tuple; None where it is not known."""
    if isinstance(value, Ref):
        return None if value.optional else "a ref"
    return "an array" if _is_number(value) else "`None`" if value == NONE else None


def _is_number(value: Value) -> bool:
    return isinstance(value, Array) or (isinstance(value, Const) and value.kind in _NUMBERS)


def _shape(value: Value) -> Shape | None:
    return value.shape if isinstance(value, Array) else ()


def shapes_differ(one: Shape, other: Shape) -> bool:
    """Whether they certainly are not one shape."""
    if len(one) != len(other):
        # A symbol in the shape of a block may be None, which removes the dimension.
        return all(isinstance(size, int) for size in (*one, *other))
    pairs = zip(one, other, strict=True)
    return any(isinstance(left, int) and isinstance(right, int) and left != right for left, right in pairs)
