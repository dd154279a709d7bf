"""Known by which thing it is, not by what it is equal to: two loads of the same shape are equal, and not the same."""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

_T = TypeVar("_T")


class Same:
    """A key that is equal to those of the very same thing, which it holds: no other one can take its address."""

    __slots__ = ("_hash", "thing")

    def __init__(self, thing: object) -> None:
        self.thing = thing
        self._hash = id(thing)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.thing is other.thing

    def __repr__(self) -> str:
        return f"Same({self.thing!r})"


class SameEach:
    """The key of a row of things, each known by which one it is. It holds them; a key for each is made more slowly."""

    __slots__ = ("_hash", "things")

    def __init__(self, things: tuple[object, ...]) -> None:
        self.things = things
        self._hash = hash(tuple(map(id, things)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SameEach) or len(self.things) != len(other.things):
            return False
        return all(map(is_, self.things, other.things))

    def __repr__(self) -> str:
        return f"SameEach({self.things!r})"


def each_once(stack: list[_T]) -> Iterator[_T]:
    """What is taken from a stack, to which more is added meanwhile: each thing once, however many others share it."""
    seen: dict[int, _T] = {}  # by addresses, which nothing else takes while all are held here
    while stack:
        thing = stack.pop()
        if id(thing) not in seen:
            seen[id(thing)] = thing
            yield thing
