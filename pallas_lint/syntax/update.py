"""The outline of an edited text, made from the one before: what the edit left alone keeps its piece, parsed or not.

A piece that is kept moves: its lines and its source change in place, so that the sites and traces which refer to it
stand where the code now stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.syntax.outline import Outline, outline, parser

if TYPE_CHECKING:
    import tree_sitter

    from pallas_lint.source import Source
    from pallas_lint.syntax.piece import Piece


def updated(before: Outline, source: Source) -> Outline:
    """The same as `outline(source)`, with pieces of `before` in it; `before` is used up."""
    result = outline(source, _edited(before, source.text))
    kept: dict[int, Piece] = {}
    result.pieces = _adopted(before.pieces, result.pieces, kept)
    result.imports = [(kept.get(id(piece), piece), bound) for piece, bound in result.imports]
    return result


def _edited(before: Outline, text: str) -> tree_sitter.Tree | None:
    """The new text's tree, from the old tree; None where only parsing it whole is sure to give the same."""
    tree = before.tree
    if tree is None or tree.root_node.has_error or before.data is None or "\r" in text:
        return None
    import tree_sitter

    old, new = before.data, text.encode("utf-8", "surrogatepass")
    most = min(len(old), len(new))
    start = _common(old, new, most)
    start = new.rfind(b"\n", 0, start) + 1  # whole lines: rows and columns are then easily told
    rest = _common_end(old, new, most - start)
    after = new.find(b"\n", len(new) - rest)
    rest = 0 if after < 0 else len(new) - after - 1
    rows = new.count(b"\n", 0, start)
    old_end, new_end = len(old) - rest, len(new) - rest

    def point(data: bytes, end: int) -> tree_sitter.Point:
        line = data.rfind(b"\n", 0, end) + 1
        place: tree_sitter.Point = tree_sitter.Point(rows + data.count(b"\n", start, end), end - line)
        return place

    earlier = tree.copy()
    earlier.edit(start, old_end, new_end, tree_sitter.Point(rows, 0), point(old, old_end), point(new, new_end))
    found = parser().parse(new, earlier)
    return None if found.root_node.has_error else found


def _common(old: bytes, new: bytes, most: int) -> int:
    """How many bytes both begin with, `most` at most."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(old: bytes, new: bytes, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _adopted(old: list[Piece], new: list[Piece], kept: dict[int, Piece]) -> list[Piece]:
    """`new` with pieces of `old` in place of the same ones, found from both ends; `kept` is told by id of the new."""
    result = list(new)
    most = min(len(old), len(new))
    head = 0
    while head < most and _is_same(old[head], new[head]):
        head += 1
    tail = 0
    while tail < most - head and _is_same(old[-1 - tail], new[-1 - tail]):
        tail += 1
    for at in range(head):
        result[at] = _moved(old[at], new[at], kept)
    for at in range(1, tail + 1):
        result[-at] = _moved(old[-at], new[-at], kept)
    return result


def _is_same(old: Piece, new: Piece) -> bool:
    if (old.kind, old.names, old.nested, old.deep) != (new.kind, new.names, new.nested, new.deep):
        return False
    if old.was_parsed and old.problem is not None and not old.suspect:
        return False  # a problem that only shows where somebody asks for the syntax
    if old.suspect != new.suspect or _error_below(old) != _error_below(new):
        return False
    if old.members and new.members:
        return old.header == new.header
    return not old.members and not new.members and old.text == new.text


def _error_below(piece: Piece) -> tuple[int, int] | None:
    at = piece.error_at
    return None if at is None else (at.line - piece.first, at.column)


def _moved(old: Piece, new: Piece, kept: dict[int, Piece]) -> Piece:
    if old.members:
        members = _adopted(old.members, new.members, kept)
        old.forget_text()  # between members may be comments
        old.members = members
    old.move_problem(new.first - old.first)
    old.error_at, old.in_tree = new.error_at, new.in_tree
    old.source, old.first, old.last, old.header_end = new.source, new.first, new.last, new.header_end
    kept[id(new)] = old
    return old
