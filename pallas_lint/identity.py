"""Dictionary keys that compare by object identity and keep the object alive.

Two loads of the same shape are equal values, and yet not the same load.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import TypeVar

_T = TypeVar("_T")


class ById:
    """A key equal only to keys of the very same object. It holds the object, so that its address is not reused."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self._hash = id(value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and self.value is other.value

    def __repr__(self) -> str:
        return f"ById({self.value!r})"


class ByIds:
    """A key of a tuple of objects, each compared by identity; faster than a tuple of `ById`."""

    __slots__ = ("_hash", "values")

    def __init__(self, values: tuple[object, ...]) -> None:
        self.values = values
        self._hash = hash(tuple(map(id, values)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByIds) or len(self.values) != len(other.values):
            return False
        return all(map(is_, self.values, other.values))

    def __repr__(self) -> str:
        return f"ByIds({self.values!r})"


def iter_unique(stack: list[_T]) -> Iterator[_T]:
    """Pop the items of a stack, each object once. More may be pushed while iterating."""
    seen: dict[int, _T] = {}  # holds the items, so that no address is reused
    while stack:
        item = stack.pop()
        if id(item) not in seen:
            seen[id(item)] = item
            yield item
