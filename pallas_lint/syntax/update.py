"""The outline of an edited text, made from the previous one: unchanged pieces are kept, with their parsed nodes.

A piece that is kept moves: its lines and its source change in place, so that the sites and traces which refer to it
point to where the code is now.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from pallas_lint.syntax.outline import CodeLine, GonePiece, Outline, last_line, outline
from pallas_lint.syntax.parser import parsed_bytes, parser
from pallas_lint.text.difference import common_end, common_start

if TYPE_CHECKING:
    from collections.abc import Container, Hashable

    import tree_sitter

    from pallas_lint.syntax.outline import ImportedName
    from pallas_lint.syntax.piece import Piece
    from pallas_lint.text.source import Source


# Of tree-sitter's nodes: what consists of statements.
_STATEMENTS = re.compile(r"^(?:module|block)$|_(?:statement|definition|clause)$")
_MAX_EDITED = 64  # pieces that are compared with all new ones
_MAX_REVISIONS = 12  # so many texts ago a piece was there that may come back


def updated(before: Outline, source: Source) -> Outline:
    """`outline(source)`, with pieces of `before` reused; `before` must not be used any more."""
    untouched = _Untouched(before, source)
    result = outline(source, _edited(before, source.text), untouched)
    result.whole = result.whole or before.whole
    kept: dict[Piece, Piece] = {}
    alike = _Alike(before, result)
    result.pieces = _adopted(before.pieces, result.pieces, kept, alike, untouched.taken)
    gone = _Gone(before, result, alike)
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
        above = common_start(old.text, source.text, most)
        below = common_end(old.text, source.text, most - above)
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
        if whole is None or whole[0] is not self._before.tree or any(piece.is_refused for piece in self._before.walk()):
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
        if piece is None or piece.nested is not nested or not piece.in_tree or piece.suspect or piece.is_refused:
            return None
        self._move(piece, shift)
        return piece

    def _move(self, piece: Piece, shift: int) -> None:
        self.taken.add(piece)
        for part in (piece, *piece.members):
            part.move(self._source, shift)

    def imports(self, piece: Piece) -> tuple[list[ImportedName], list[str]]:
        return self._imports.get(piece, []), self._stars.get(piece, [])


def _edited(before: Outline, text: str) -> tuple[tree_sitter.Tree, bytes] | None:
    """The new text's tree, from the last one without an error, and what it was made of.

    None where parsing it whole may give another.
    """
    if before.whole is None or "\r" in text:
        return None
    import tree_sitter

    (tree, old), new = before.whole, parsed_bytes(text)
    most = min(len(old), len(new))
    start = common_start(old, new, most)
    start = new.rfind(b"\n", 0, start) + 1  # whole lines, so that rows and columns are easily computed
    rest = common_end(old, new, most - start)
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
    return None if found.root_node.has_error else (found, new)


def _adopted(
    earlier: list[Piece],
    found: list[Piece],
    kept: dict[Piece, Piece],
    alike: _Alike,
    taken: Container[Piece],
) -> list[Piece]:
    """`found` with earlier pieces in place of those with the same text, wherever they were; the reused ones are moved.

    So are pieces with other comments and blank lines, where no cached result about them depends on those, and pieces
    that were broken and still are. `kept` is decided by the new one.
    """
    left: dict[Hashable, deque[Piece]] = {}
    for piece in earlier:
        if piece not in taken and not piece.is_refused:
            left.setdefault(_content(piece), deque()).append(piece)
    result = list(found)
    for at, piece in enumerate(found):
        same = left.get(_content(piece)) if left and piece not in taken else None
        if same:
            result[at] = _moved(same.popleft(), piece, kept, alike, taken)
    rest = [piece for same in left.values() for piece in same]
    rest += [piece for piece in earlier if piece not in taken and piece.is_refused]
    if len(rest) > _MAX_EDITED:  # the text changed all over
        return result
    for at, piece in enumerate(found) if rest else ():
        if result[at] is piece and piece not in taken:
            old = next((old for old in rest if alike.take_over(old, piece)), None)
            if old is not None:
                rest.remove(old)
                result[at] = _moved(old, piece, kept, alike)
                if old.problem is not None:
                    old.take_problem(piece)
    return result


class _Alike:
    """Which pieces of two texts are the same to all who read them: other comments, blank lines, or broken code."""

    def __init__(self, before: Outline, after: Outline) -> None:
        self._before, self._after = before, after

    def take_over(self, old: Piece, new: Piece, lines_then: list[CodeLine] | None = None) -> bool:
        """Have `old` become `new` if they are alike, and whether they are; it is not moved yet.

        `lines_then` are the lines of `old` if it is of an earlier text.
        """
        about, now = ((piece.kind, piece.names, piece.nested, piece.suspect) for piece in (old, new))
        if about != now or not (_may_be_alike(old) and _may_be_alike(new)) or not self._are_words_unread(old, new):
            return False
        if new.suspect:
            return self._are_both_broken(old, new)
        if old.problem is not None:  # uses of names are looked for in it all the same
            return _code_on_lines(old) == _code_on_lines(new) and self._are_both_broken(old, new)
        lines = self._same_lines(old, new, lines_then)
        if lines is None:
            return False
        old.take_spacing(new, lines)
        return True

    def _are_both_broken(self, old: Piece, new: Piece) -> bool:
        """Whether nothing is read of either: what Python does not parse has no statements."""
        problems = old.problem, new.problem
        return all(each is not None and not each.limit for each in problems) and old.may_have_text(new.text)

    def _are_words_unread(self, old: Piece, new: Piece) -> bool:
        """Names may be looked for among a piece's words."""
        words = old.words ^ new.words
        return not words or not any(
            piece is not new and not words.isdisjoint(piece.words) for piece in self._after.walk()
        )

    def _same_lines(self, old: Piece, new: Piece, lines_then: list[CodeLine] | None) -> list[int] | None:
        """Where each line of `old` is in `new`, from 0, if only unread comments and blank lines differ."""
        lines, now = old.text.split("\n"), new.text.split("\n")
        most = min(len(lines), len(now))
        above = next((at for at in range(most) if lines[at] != now[at]), most)
        below = next((at for at in range(most - above) if lines[-1 - at] != now[-1 - at]), most - above)
        end, end_now = len(lines) - below, len(now) - below
        if lines_then is None:
            differing = _lines_of(self._before.tree, old, above, end)
        else:
            differing = lines_then[above:end]
        differing_now = _lines_of(self._after.tree, new, above, end_now)
        code, code_now = (
            {above + at: line.code for at, line in enumerate(some) if line.code is not None}
            for some in (differing, differing_now)
        )
        if list(code.values()) != list(code_now.values()):
            return None
        comments, comments_now = (
            "\n".join(line.comment for line in some if line.comment) for some in (differing, differing_now)
        )
        if "pallas-lint" in comments + comments_now or not old.may_have_text(new.text, comments, comments_now):
            return None
        places, later, found = dict(zip(code, code_now, strict=True)), min(end_now, len(now) - 1), []
        for at in reversed(range(above, end)):
            later = places.get(at, later)
            found.append(later)  # what is no code is nowhere: code follows
        return [*range(above), *reversed(found), *(end_now + at for at in range(below))]


def _code_on_lines(piece: Piece) -> list[str]:
    return [line.rstrip() for line in piece.text.split("\n")]


def _may_be_alike(piece: Piece) -> bool:
    if piece.members or piece.deep or piece.in_tree is piece.suspect:
        return False
    return "\r" not in piece.text.replace("\r\n", "\n")


def _lines_of(tree: tree_sitter.Tree | None, piece: Piece, first: int = 0, end: int | None = None) -> list[CodeLine]:
    """Some of its lines. All is code where a comment or a blank line is within an expression."""
    lines, found = piece.text.split("\n"), []
    for at, text in enumerate(lines[first:end], first):
        row = piece.first - 1 + at
        code, comment = _apart(tree, row, text)
        is_joined = at > 0 and lines[at - 1].endswith("\\")
        is_code = code or is_joined or not (comment or _is_between_statements(tree, row, 0))
        found.append(CodeLine(text if is_joined else code if is_code else None, comment))
    return found


def _apart(tree: tree_sitter.Tree | None, row: int, line: str) -> tuple[str, str]:
    """The code and the comment on a line; all is code where a comment, or spaces at the end, are in an expression."""
    if tree is None or not line:
        return line, ""
    end = len(line.encode("utf-8", "surrogatepass"))
    node = tree.root_node.descendant_for_point_range((row, end - 1), (row, end)) if "#" in line else None
    if node is not None and node.type == "comment":
        if node.parent is None or not _STATEMENTS.search(node.parent.type):
            return line, ""
        start = line.encode("utf-8", "surrogatepass")[: node.start_point.column]
        column = len(start.decode("utf-8", "surrogatepass"))
        return line[:column].rstrip(), line[column:]
    code = line.rstrip()
    return (
        (code, "")
        if code != line and not code.endswith("\\") and _is_between_statements(tree, row, end - 1)
        else (line, "")
    )


def _is_between_statements(tree: tree_sitter.Tree | None, row: int, column: int) -> bool:
    """Whether the character there is part of no expression or string."""
    node = None if tree is None else tree.root_node.descendant_for_point_range((row, column), (row, column + 1))
    return node is not None and _STATEMENTS.search(node.type) is not None


class _Gone:
    """Recently removed pieces, to replace new ones that are alike: code is fixed, or an edit undone."""

    def __init__(self, before: Outline, result: Outline, alike: _Alike) -> None:
        self._alike, self._tree = alike, result.tree
        self._present = set(result.walk())
        self._known = set(before.walk())
        lately = [
            GonePiece(piece, 1, _code_of(before.tree, piece)) for piece in before.walk() if piece not in self._present
        ]
        lately += [GonePiece(piece, ago + 1, lines) for piece, ago, lines in before.gone if ago < _MAX_REVISIONS]
        self._pieces = [each for each in lately if each.piece not in self._present]
        self._left = {_content(each.piece): each.piece for each in self._pieces[::-1] if not each.piece.is_refused}
        self._alike_left: dict[Hashable, GonePiece] = {
            code: each for each in self._pieces[::-1] if (code := _code(each.lines)) is not None
        }

    def put_back(self, pieces: list[Piece], kept: dict[Piece, Piece]) -> None:
        for at, piece in enumerate(pieces):
            if piece in self._known:
                continue
            same = self._left.get(_content(piece))
            if same is None or same in self._present:
                same = self._other(piece)
            if same is not None:
                # Members of a class may be elsewhere by now.
                same.members = [member for member in same.members if member not in self._present]
                pieces[at] = _moved(same, piece, kept, self._alike)
                self._present.update((same, *same.members))

    def _other(self, piece: Piece) -> Piece | None:
        """An earlier piece that is now this one, with other comments and blank lines."""
        code = _code(_code_of(self._tree, piece)) if self._alike_left else None
        gone = None if code is None else self._alike_left.get(code)
        if gone is None or gone.piece in self._present or not self._alike.take_over(gone.piece, piece, gone.lines):
            return None
        return gone.piece

    @property
    def left(self) -> list[GonePiece]:
        return [each for each in self._pieces if each.piece not in self._present]


def _code_of(tree: tree_sitter.Tree | None, piece: Piece) -> list[CodeLine] | None:
    """The lines of a piece of that tree; None where others cannot be like it."""
    if piece.suspect or not _may_be_alike(piece) or piece.is_refused:
        return None
    return _lines_of(tree, piece)


def _code(lines: list[CodeLine] | None) -> Hashable:
    return None if lines is None else tuple(line.code for line in lines if line.code is not None)


def _content(piece: Piece) -> Hashable:
    """Equal for pieces that only their positions distinguish."""
    text = piece.header if piece.members else piece.text
    about = piece.kind, piece.names, piece.nested, piece.deep, piece.suspect, _error_below(piece)
    return *about, bool(piece.members), text


def _error_below(piece: Piece) -> tuple[int, int] | None:
    at = piece.error_at
    return None if at is None else (at.line - piece.first, at.column)


def _moved(old: Piece, new: Piece, kept: dict[Piece, Piece], alike: _Alike, taken: Container[Piece] = ()) -> Piece:
    if new.members:
        members = _adopted(old.members, new.members, kept, alike, taken)
        old.forget_text()  # between members may be comments
        old.members = members
    old.error_at, old.in_tree = new.error_at, new.in_tree
    old.move(new.source, new.first - old.first)
    old.last, old.header_end = new.last, new.header_end
    kept[new] = old
    return old
