"""Which pieces of a file a piece can reach by the words in it: more than what it really looks up.

The answers are kept from text to text. An edit has only those asked again that name what it touched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pallas_lint.records import define, field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.syntax import Outline, Piece

# Code that may reach names which do not stand in it.
_BY_TEXT = re.compile(
    r"\b(?:globals|locals|vars|eval|exec|__import__)\s*\(|__dict__|\b[gs]etattr\((?!\s*[\w.]+\s*,\s*[\"'])"
)
_DUNDER = re.compile(r"__\w+__$")


class Reached(NamedTuple):
    """The pieces that one can reach, itself included: in the file's order, and as a set."""

    pieces: tuple[Piece, ...]
    all: frozenset[Piece]


@define(eq=False)
class _Known:
    """A piece as it was in the last text."""

    piece: Piece
    owner: Piece | None  # the class that it is a member of
    members: tuple[Piece, ...]
    bound: frozenset[str]
    at: int = 0  # its number in the file


@define(eq=False)
class Reachable:
    """Of the pieces of one outline after the other."""

    _known: dict[Piece, _Known] = field(factory=dict, init=False)  # all by the piece
    _binders: dict[str, dict[Piece, None]] = field(factory=dict, init=False)
    _named: dict[Piece, frozenset[str]] = field(factory=dict, init=False)  # the words in a piece that some piece binds
    _reached: dict[Piece, Reached] = field(factory=dict, init=False)

    def update(self, outline: Outline) -> None:
        """The text is another one."""
        before, now = self._known, {}
        same_order, last = True, -1
        for owner, piece in _owned(outline):
            known, members = before.get(piece), tuple(piece.members)
            if known is None or known.owner is not owner or known.members != members:
                known = _Known(piece, owner, members, _bound(piece))
            else:
                same_order &= known.at > last
                last = known.at
            now[piece] = known
        gone = [each for key, each in before.items() if now.get(key) is not each]
        new = [each for key, each in now.items() if before.get(key) is not each]
        for at, known in enumerate(now.values()):
            known.at = at
        self._known = now
        if gone or new:
            self._forget(gone, new, everything=not same_order)

    def _forget(self, gone: list[_Known], new: list[_Known], *, everything: bool) -> None:
        touched: set[str] = set()
        for known in gone:
            touched |= known.bound
            for name in known.bound:
                del self._binders[name][known.piece]
        for known in new:
            touched |= known.bound
            for name in known.bound:
                self._binders.setdefault(name, {})[known.piece] = None
        stale = {known.piece for known in (*gone, *new)}
        for key, known in self._known.items():
            if not touched.isdisjoint(_words(known.piece)) or known.piece.has(_BY_TEXT):
                stale.add(key)
        self._named = {key: each for key, each in self._named.items() if key not in stale}
        self._reached = (
            {} if everything else {key: each for key, each in self._reached.items() if stale.isdisjoint(each.all)}
        )

    def has(self, piece: Piece) -> bool:
        """Whether the piece is one of the file."""
        return piece in self._known

    def of(self, root: Piece) -> Reached:
        """What a piece can reach."""
        known = self._reached.get(root)
        if known is None:
            known = self._reached[root] = self._closure(root)
        return known

    def _closure(self, root: Piece) -> Reached:
        found = {root}
        stack = [root]
        asked: set[str] = set()  # many pieces may name, and bind, the same word
        while stack and len(found) < len(self._known):
            for piece in self._following(stack.pop(), asked):
                if piece not in found:
                    found.add(piece)
                    stack.append(piece)
        order = sorted(found, key=lambda key: self._known[key].at)
        return Reached(tuple(order), frozenset(found))

    def _following(self, piece: Piece, asked: set[str]) -> Iterator[Piece]:
        """What a piece reaches directly, by words that have not been asked for."""
        known = self._known[piece]
        if piece.has(_BY_TEXT):
            yield from (each.piece for each in self._known.values())
            return
        # What is called without being named; class bodies run whole.
        yield from (member for member in known.members if member.kind != "def" or _DUNDER.match(member.names[0]))
        if known.owner is not None:
            yield known.owner
        words = self._named.get(piece)
        if words is None:
            words = self._named[piece] = frozenset(self._binders.keys() & _words(piece))
        for word in words - asked:
            asked.add(word)
            yield from self._binders[word]


def _owned(outline: Outline) -> Iterator[tuple[Piece | None, Piece]]:
    for piece in outline.pieces:
        yield None, piece
        for member in piece.members:
            yield piece, member


def _words(piece: Piece) -> frozenset[str]:
    return piece.header_words if piece.members else piece.words


def _bound(piece: Piece) -> frozenset[str]:
    """The names that a piece may bind; a block, any that stand in it, unless it is broken."""
    if piece.kind != "block":
        return frozenset(piece.names)
    return frozenset() if piece.suspect and piece.problem is not None else piece.words
