"""Numbers of the scalar unit: 32 bits, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

Words = Sequence[int | None]  # of an array in scalar memory, each of 32 bits; None: not known


class UndeterminedSchedule(Exception):
    """The schedule depends on an unknown value; the message names it."""


class UnknownNumber:
    """An unknown number, and numbers computed from it. A decision by it raises the reason."""

    __slots__ = ("why",)

    def __init__(self, why: str) -> None:
        self.why = why

    def _same(self, *_: Any) -> UnknownNumber:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __and__ = __rand__ = __or__ = __ror__ = _same
    __xor__ = __rxor__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __floordiv__ = __rfloordiv__ = _same
    __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _same
    __eq__ = __ne__ = _same  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise UndeterminedSchedule(self.why)

    __int__ = __index__ = __hash__ = __bool__


def word(value: Any) -> Any:
    """As a signed number of 32 bits."""
    return value if type(value) is int and -0x80000000 <= value <= 0x7FFFFFFF else _wrapped(value)


def _wrapped(value: Any) -> Any:
    if isinstance(value, UnknownNumber):
        return value
    if not isinstance(value, int):
        return value.word()  # one that grows with a loop
    value &= 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value


def unsigned(value: Any) -> Any:
    """As a number of 32 bits without a sign."""
    return value & 0xFFFFFFFF


def least(one: Any, other: Any) -> Any:
    return chosen(one < other, one, other)


def most(one: Any, other: Any) -> Any:
    return chosen(one > other, one, other)


def divided(one: Any, other: Any) -> Any:
    """Division of numbers without a sign, as the scalar unit does it; what it makes of zero is not known."""
    if isinstance(other, UnknownNumber) or other == 0:
        return other if isinstance(other, UnknownNumber) else UnknownNumber("a division by zero")
    return one // other


def remainder(one: Any, other: Any) -> Any:
    if isinstance(other, UnknownNumber) or other == 0:
        return other if isinstance(other, UnknownNumber) else UnknownNumber("a division by zero")
    return one % other


def negated(value: Any) -> Any:
    """A predicate's contrary."""
    return value if isinstance(value, UnknownNumber) else not value


def both(one: Any, other: Any) -> Any:
    if isinstance(one, UnknownNumber):
        return one if isinstance(other, UnknownNumber) or other else False
    return one and other


def any_of(one: Any, other: Any) -> Any:
    if isinstance(one, UnknownNumber):
        return True if not isinstance(other, UnknownNumber) and other else one
    return one or other


def unlike(one: Any, other: Any) -> Any:
    for each in (one, other):
        if isinstance(each, UnknownNumber):
            return each
    return bool(one) != bool(other)


def store(memory: dict[Any, Any], address: Any, condition: Any, value: Any) -> None:
    """Write a word of scalar memory where a condition holds; of an unknown one nothing is known."""
    if isinstance(condition, UnknownNumber):
        memory[address] = condition
    elif condition:
        memory[address] = value


def chosen(condition: Any, one: Any, other: Any) -> Any:
    """`one` where the condition holds; of an unknown condition nothing is known."""
    return condition if isinstance(condition, UnknownNumber) else one if condition else other
