"""The outline of an edited text, made from the previous one: unchanged pieces are kept, with their parsed nodes.

A piece that is kept moves: its lines and its source change in place, so that the sites and traces which refer to it
point to where the code is now.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, AnyStr

from pallas_lint.syntax.outline import Outline, last_line, outline
from pallas_lint.syntax.parser import parsed_bytes, parser

if TYPE_CHECKING:
    from collections.abc import Container, Hashable

    import tree_sitter

    from pallas_lint.syntax.outline import ImportedName
    from pallas_lint.syntax.piece import Piece
    from pallas_lint.text.source import Source


# Of tree-sitter's nodes: what consists of statements.
_STATEMENTS = re.compile(r"^(?:module|block)$|_(?:statement|definition|clause)$")
_MAX_REVISIONS = 12  # so many texts ago a piece was there that may come back


def updated(before: Outline, source: Source) -> Outline:
    """The same as `outline(source)`, with pieces of `before` in it; `before` is used up."""
    for piece in before.walk():
        piece.in_file = None
    untouched = _Untouched(before, source)
    result = outline(source, _edited(before, source.text), untouched)
    result.whole = result.whole or before.whole
    kept: dict[Piece, Piece] = {}
    comments = _Comments(before, result)
    result.pieces = _adopted(before.pieces, result.pieces, kept, comments, untouched.taken)
    gone = _Gone(before, result, comments)
    gone.put_back(result.pieces, kept)
    for piece in result.pieces:
        gone.put_back(piece.members, kept)
    result.gone = gone.left
    result.imports = [(kept.get(piece, piece), bound) for piece, bound in result.imports]
    result.star_imports = [(kept.get(piece, piece), module) for piece, module in result.star_imports]
    return result


class _Untouched:
    """The pieces on lines above and below all that differs between two texts."""

    def __init__(self, before: Outline, source: Source) -> None:
        self.taken: set[Piece] = set()  # pieces that were; not those within
        self._before, self._source = before, source
        self._known: dict[tuple[int, int], Piece] = {}
        self._imports: dict[Piece, list[ImportedName]] = {}
        self._stars: dict[Piece, list[str]] = {}
        # The last line above, the first one below, and how far that has moved.
        self._head, self._tail, self._shift = 0, source.line_count + 1, 0
        old = before.pieces[0].source if before.pieces else source
        if "\r" in old.text or "\r" in source.text:
            return  # a line may end in the middle of what is common
        most = min(len(old.text), len(source.text))
        above = _common(old.text, source.text, most)
        below = _common_end(old.text, source.text, most - above)
        self._head = source.position(above).line - 1
        start, start_before = (text.position(len(text.text) - below) for text in (source, old))
        self._tail = start.line + (start.column > 1 or start_before.column > 1)
        self._shift = source.line_count - old.line_count
        for piece, bound in before.imports:
            self._imports.setdefault(piece, []).append(bound)
        for piece, module in before.star_imports:
            self._stars.setdefault(piece, []).append(module)

    def split(self, root: tree_sitter.Node) -> tuple[list[Piece], list[tree_sitter.Node], list[Piece]]:
        pieces, whole = self._before.pieces, self._before.whole
        if whole is None or whole[0] is not self._before.tree or any(map(_is_refused, self._before.walk())):
            return [], root.children, []
        # The last statement above the edit may go on in it. The first one below is looked for in the tree: where it
        # is one again, so are all that follow.
        head = max(sum(piece.last <= self._head for piece in pieces) - 1, 0)
        tail = sum(piece.first + self._shift < self._tail for piece in pieces)
        above = pieces[head - 1].last if head else 0
        below = pieces[tail].first + self._shift - 1 if tail < len(pieces) else None
        cursor, nodes = root.walk(), []
        there = cursor.goto_first_child_for_point((above, 0)) is not None
        while there and cursor.node is not None and (below is None or cursor.node.start_point[0] < below):
            nodes.append(cursor.node)
            there = cursor.goto_next_sibling()
        if below is not None:
            node = cursor.node if there else None
            if node is None or node.start_point != (below, 0) or last_line(node) != pieces[tail].last + self._shift:
                return [], root.children, []
        for some, shift in ((pieces[:head], 0), (pieces[tail:], self._shift)):
            for piece in some:
                self._move(piece, shift)
        return pieces[:head], nodes, pieces[tail:]

    def take(self, first: int, last: int, *, nested: bool) -> Piece | None:
        if last <= self._head:
            shift = 0
        elif first >= self._tail:
            shift = self._shift
        else:
            return None
        if not self._known:
            # Reused pieces have moved: they are at the positions of others.
            left = (piece for piece in self._before.pieces if piece not in self.taken)
            self._known = {(kept.first, kept.last): kept for piece in left for kept in (piece, *piece.members)}
        piece = self._known.get((first - shift, last - shift))
        if piece is None or piece.nested is not nested or not piece.in_tree or piece.suspect or _is_refused(piece):
            return None
        self._move(piece, shift)
        return piece

    def _move(self, piece: Piece, shift: int) -> None:
        self.taken.add(piece)
        for part in (piece, *piece.members):
            part.move(self._source, shift)

    def imports(self, piece: Piece) -> tuple[list[ImportedName], list[str]]:
        return self._imports.get(piece, []), self._stars.get(piece, [])


def _edited(before: Outline, text: str) -> tree_sitter.Tree | None:
    """The new text's tree, from the last one without an error; None where parsing it whole may give another."""
    if before.whole is None or "\r" in text:
        return None
    import tree_sitter

    (tree, old), new = before.whole, parsed_bytes(text)
    most = min(len(old), len(new))
    start = _common(old, new, most)
    start = new.rfind(b"\n", 0, start) + 1  # whole lines, so that rows and columns are easily computed
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


def _common(old: AnyStr, new: AnyStr, most: int) -> int:
    """How much both begin with, `most` at most."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(old: AnyStr, new: AnyStr, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _adopted(
    earlier: list[Piece],
    found: list[Piece],
    kept: dict[Piece, Piece],
    comments: _Comments,
    taken: Container[Piece] = (),
) -> list[Piece]:
    """`found` with earlier pieces in place of those with the same text, wherever they were; the reused ones are moved.

    So are pieces with other comments, where no cached result about them depends on those. `kept` is decided by
    the new one.
    """
    left: dict[Hashable, deque[Piece]] = {}
    for piece in earlier:
        if piece not in taken and not _is_refused(piece):
            left.setdefault(_content(piece), deque()).append(piece)
    result = list(found)
    for at, piece in enumerate(found):
        same = left.get(_content(piece)) if left and piece not in taken else None
        if same:
            result[at] = _moved(same.popleft(), piece, kept, comments, taken)
    rest = [piece for same in left.values() for piece in same]
    for at, piece in enumerate(found) if rest else ():
        if result[at] is piece and piece not in taken:
            old = next((old for old in rest if comments.alone_differ(old, piece)), None)
            if old is not None:
                rest.remove(old)
                old.take_comments(piece)
                result[at] = _moved(old, piece, kept, comments)
    return result


class _Comments:
    """Which pieces of two texts have the same tokens at the same lines and columns, and other comments."""

    def __init__(self, before: Outline, after: Outline) -> None:
        self._before, self._after = before, after

    def alone_differ(self, old: Piece, new: Piece) -> bool:
        """Whether `new` is the same as `old` but for comments that are not read."""
        for piece in (old, new):
            if piece.members or piece.suspect or piece.deep or not piece.in_tree:
                return False
        if (old.kind, old.names, old.nested) != (new.kind, new.names, new.nested):
            return False
        lines, now = old.text.split("\n"), new.text.split("\n")
        if len(lines) != len(now):
            return False
        changed = [at for at, (line, other) in enumerate(zip(lines, now, strict=True)) if line != other]
        for at in changed:
            code, comment = _apart(self._before.tree, old.first - 1 + at, lines[at])
            code_now, comment_now = _apart(self._after.tree, new.first - 1 + at, now[at])
            if not (comment or comment_now) or code.rstrip() != code_now.rstrip():
                return False
            if "pallas-lint" in comment + comment_now or not old.may_have_comments(comment, comment_now, new.text):
                return False
        # Names may be looked for among a piece's words.
        words = old.words ^ new.words
        return not any(piece is not new and not words.isdisjoint(piece.words) for piece in self._after.walk())


def _apart(tree: tree_sitter.Tree | None, row: int, line: str) -> tuple[str, str]:
    """The code and the comment on a line; all is code where a comment is within an expression."""
    if tree is None or "#" not in line:
        return line, ""
    end = len(line.encode("utf-8", "surrogatepass"))
    node = tree.root_node.descendant_for_point_range((row, end - 1), (row, end))
    if node is None or node.type != "comment" or node.parent is None or not _STATEMENTS.search(node.parent.type):
        return line, ""
    start = line.encode("utf-8", "surrogatepass")[: node.start_point.column]
    column = len(start.decode("utf-8", "surrogatepass"))
    return line[:column], line[column:]


class _Gone:
    """Recently removed pieces, to replace new ones with the same text: code is fixed, or an edit undone."""

    def __init__(self, before: Outline, result: Outline, comments: _Comments) -> None:
        self._comments = comments
        self._present = set(result.walk())
        self._known = set(before.walk())
        lately = [(piece, 1) for piece in before.walk()]
        lately += [(piece, ago + 1) for piece, ago in before.gone if ago < _MAX_REVISIONS]
        self._pieces = [(piece, ago) for piece, ago in lately if piece not in self._present]
        self._left = {_content(piece): piece for piece, _ in reversed(self._pieces) if not _is_refused(piece)}

    def put_back(self, pieces: list[Piece], kept: dict[Piece, Piece]) -> None:
        for at, piece in enumerate(pieces):
            same = None if piece in self._known else self._left.get(_content(piece))
            if same is not None and same not in self._present:
                # Members of a class may be elsewhere by now.
                same.members = [member for member in same.members if member not in self._present]
                pieces[at] = _moved(same, piece, kept, self._comments)
                self._present.update((same, *same.members))

    @property
    def left(self) -> list[tuple[Piece, int]]:
        return [(piece, ago) for piece, ago in self._pieces if piece not in self._present]


def _is_refused(piece: Piece) -> bool:
    """Whether it has an error that only parsing shows."""
    return not piece.suspect and piece.was_parsed and piece.problem is not None


def _content(piece: Piece) -> Hashable:
    """Equal for pieces that only their positions distinguish."""
    text = piece.header if piece.members else piece.text
    about = piece.kind, piece.names, piece.nested, piece.deep, piece.suspect, _error_below(piece)
    return *about, bool(piece.members), text


def _error_below(piece: Piece) -> tuple[int, int] | None:
    at = piece.error_at
    return None if at is None else (at.line - piece.first, at.column)


def _moved(
    old: Piece, new: Piece, kept: dict[Piece, Piece], comments: _Comments, taken: Container[Piece] = ()
) -> Piece:
    if new.members:
        members = _adopted(old.members, new.members, kept, comments, taken)
        old.forget_text()  # between members may be comments
        old.members = members
    old.error_at, old.in_tree = new.error_at, new.in_tree
    old.move(new.source, new.first - old.first)
    old.last, old.header_end = new.last, new.header_end
    kept[new] = old
    return old
