"""Arithmetic on Python values, some of which are known only by name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import TypeGuard

from pallas_lint.kernels.model.known_names import is_integer
from pallas_lint.kernels.model.values import UNKNOWN, Const, Seq, Sym, Value

_FOLD: dict[str, Callable[..., object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "max": max,
    "min": min,
}
_COMMUTATIVE = frozenset((*"+*&|^", "max", "min"))
_OF_EQUALS = {"-": 0, "%": 0, "//": 1}  # results of equal integers
_NUMBERS = (int, float, complex, str)
_MAX_INTEGER = 2**80
_MAX_RANK = 16  # dimensions that are written out


def arithmetic(symbol: str, left: Value, right: Value) -> Value:
    """`left symbol right`: a constant, a named expression, a longer sequence, or unknown."""
    if isinstance(left, Const) and isinstance(right, Const):
        return _fold(symbol, left, right)
    if isinstance(left, Seq) or isinstance(right, Seq):
        return _sequences(symbol, left, right)
    if isinstance(left, Sym | Const) and isinstance(right, Sym | Const):
        return symbolic(symbol, left, right)
    return UNKNOWN


def symbolic(symbol: str, left: Sym | Const, right: Sym | Const) -> Value:
    """A named expression; `a * b` and `b * a` get the same name, neutral elements vanish."""
    if left == right and symbol in ("max", "min"):
        return left
    if left == right and symbol in _OF_EQUALS and kind_of_number(left) is int:
        return Const(_OF_EQUALS[symbol])
    if symbol in "+-" and right == Const(0):
        return left
    if symbol in ("*", "//") and right == Const(1):
        return left
    if symbol == "+" and left == Const(0):
        return right
    if symbol == "*" and left == Const(1):
        return right
    first, second = _text(left), _text(right)
    if symbol in _COMMUTATIVE and second < first:
        first, second = second, first
    text = f"{symbol}({first},{second})" if symbol.isalpha() else f"({first}{symbol}{second})"
    return Sym(text, owner_of(left, right), operation=(symbol, left, right))


# -- shapes of unknown rank ----------------------------------------------------------------------------------------


def is_of_shape(value: Value) -> TypeGuard[Sym]:
    """Whether it is `x.shape`, or its end, `x.shape[1:]`."""
    return isinstance(value, Sym) and value.operation is None and _whole_shape(value)[0].endswith(".shape")


def _whole_shape(value: Sym) -> tuple[str, int]:
    """The shape that it is the end of, and how many sizes come before; itself where it is no such end."""
    text, _, start = value.text.removesuffix(":]").rpartition("[")
    return (text, int(start)) if value.text.endswith(":]") and start.isdecimal() else (value.text, 0)


def item_of(value: Sym, at: int) -> Sym:
    """`value[at]`; of the end of a shape by the place in the whole: `x.shape[2]` of `x.shape[1:]`."""
    text, start = _whole_shape(value)
    return Sym(f"{text}[{at + start if at >= 0 else at}]", value.owner)


def part_of_shape(value: Sym, start: int, stop: int | None) -> Seq | Sym | None:
    """`x.shape[start:stop]` of an array that has so many dimensions."""
    if not is_of_shape(value) or start < 0 or not (stop is None or start <= stop <= _MAX_RANK):
        return None
    if stop is not None:
        return Seq(tuple(item_of(value, at) for at in range(start, stop)))
    text, before = _whole_shape(value)
    return Sym(f"{text}[{before + start}:]", value.owner) if before + start else value


def closed_shape(value: Value, rank: int) -> Value:
    """A tuple that ends with sizes of a shape, or a shape, if it has so many items."""
    items, rest = (value.items, value.rest) if isinstance(value, Seq) else ((), value if is_of_shape(value) else None)
    if rest is None or not len(items) <= rank <= _MAX_RANK:
        return value
    return Seq((*items, *(item_of(rest, at) for at in range(rank - len(items)))))


def owner_of(*operands: Value) -> object:
    """The owner of a value computed from these: all their owners. Equal names with equal owners are equal values."""
    owners: set[object] = set()
    for operand in operands:
        if isinstance(operand, Sym):
            owners |= operand.owners
    return owners.pop() if len(owners) == 1 else frozenset(owners)


def kind_of_number(value: Value) -> type[int] | type[float] | None:
    """What a number certainly is: a part of a shape, `x.shape[0]`, and what is computed of such; None if none."""
    if isinstance(value, Const):
        return float if isinstance(value.value, float) else int if isinstance(value.value, int) else None
    if not isinstance(value, Sym):
        return None
    if value.operation is None:
        array, _, index = value.text.removesuffix("]").rpartition("[")
        return int if array.endswith(".shape") and index.lstrip("-").isdigit() else None
    symbol, *operands = value.operation
    kinds = [*map(kind_of_number, operands)]
    if None in kinds:
        return None
    return float if float in kinds or symbol == "/" else int


def _text(value: Sym | Const) -> str:
    return value.text if isinstance(value, Sym) else repr(value.value)


def _fold(symbol: str, left: Const, right: Const) -> Value:
    a, b = left.value, right.value
    if not isinstance(a, _NUMBERS) or not isinstance(b, _NUMBERS):
        return UNKNOWN
    try:
        if symbol == "**":
            if isinstance(a, str) or not isinstance(b, int | float) or abs(b) > 64:
                return UNKNOWN
            result: object = a**b
        elif symbol == "<<" and isinstance(b, int) and b > 64:
            return UNKNOWN
        elif isinstance(a, str) or isinstance(b, str):
            return Const(a + b) if symbol == "+" and isinstance(a, str) and isinstance(b, str) else UNKNOWN
        else:
            result = _FOLD[symbol](a, b)
    except (ArithmeticError, TypeError, ValueError, KeyError):
        return UNKNOWN
    return UNKNOWN if isinstance(result, int) and abs(result) > _MAX_INTEGER else Const(result)


def _sequences(symbol: str, left: Value, right: Value) -> Value:
    if symbol == "+" and isinstance(left, Seq) and isinstance(right, Seq):
        if left.open:
            return Seq(left.items, left.kind, open=True)
        return Seq(left.items + right.items, left.kind, right.open)
    if symbol == "+" and isinstance(left, Seq):
        return Seq(left.items, left.kind, open=True, rest=right if is_of_shape(right) and not left.open else None)
    if symbol == "*":
        sequence, count = (left, right) if isinstance(left, Seq) else (right, left)
        if isinstance(sequence, Seq):
            if is_integer(count) and count.value * len(sequence.items) <= 256:
                return Seq(sequence.items * max(count.value, 0), sequence.kind, sequence.open)
            return Seq((), sequence.kind, open=True)
    return UNKNOWN


# -- defaults ------------------------------------------------------------------------------------------------------


def default_number(
    value: Value | None, taken: dict[str, int] | None = None, given: Mapping[Sym, int] | None = None
) -> int | float | None:
    """The number that a value is with every parameter at its default; `taken` gets those that it depends on.

    Symbols that are `given` have that number.
    """
    if isinstance(value, Const):
        return value.value if value.kind in (int, float) else None
    if not isinstance(value, Sym):
        return None
    if value.operation is None:
        default = given[value] if given is not None and value in given else default_number(value.default, taken)
        if isinstance(default, int) and taken is not None:
            taken[value.text] = default
        return default
    symbol, left, right = value.operation
    first, second = default_number(left, taken, given), default_number(right, taken, given)
    if first is None or second is None:
        return None
    if symbol == "cdiv":
        return -(-first // second) if second else None
    result = arithmetic(symbol, Const(first), Const(second))
    return result.value if isinstance(result, Const) and result.kind in (int, float) else None


def default_of(
    value: Value | None, taken: dict[str, int] | None = None, given: Mapping[Sym, int] | None = None
) -> int | None:
    """`default_number` where it is an integer."""
    number = default_number(value, taken, given)
    return number if isinstance(number, int) else None
