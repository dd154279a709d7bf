"""Positions of comments: the statement that a comment is in, or above.

tree-sitter finds a node, its parent or its sibling in time linear in the number of siblings. All queries on a tree are
therefore answered in one walk from its root, so that a file of comments takes linear time.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tree_sitter import Node, Tree

    from pallas_lint.text.source import Source

_CLAUSES = (
    "elif_clause",
    "else_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
    "case_clause",
)
_BLOCKS = ("module", "block", "ERROR")


class Comment(NamedTuple):
    """A comment from offset `start` to `end`, and the lines that it applies to: 0 where there are none.

    Behind code these are the lines of the statement where the comment is on its first or last one, else its own line;
    alone on a line (`alone`) those of the statement or argument that begins below. Of a compound statement its header
    counts.
    """

    start: int
    end: int
    line: int
    alone: bool
    first: int
    last: int


class _CommentPosition(NamedTuple):
    node: Node
    above: _CommentPosition | None


class Comments:
    """The comments of a source, by tree-sitter: it survives broken code. Lines count from 1."""

    def __init__(self, source: Source, parsed: Tree | None = None) -> None:
        from pallas_lint.syntax.parser import parsed_bytes, parser

        self._source = source
        self._text = source.text
        self._data = parsed_bytes(source.text)
        # The tree must outlive its nodes, so it is kept.
        self._tree = parsed or parser().parse(self._data)
        self._headers: dict[int, tuple[int, int]] = {}
        self._code_lines: dict[int, int] = {}

    def holding(self, offsets: Sequence[int]) -> list[Comment]:
        """The comments that contain any of the sorted offsets, in order."""
        ends: dict[int, int] = {}
        seen: set[int] = set()
        bytes_ = self._bytes(offsets)
        for offset, byte, place in zip(offsets, bytes_, self._places(bytes_), strict=True):
            if self._text[offset] == "#" and self._data[byte : byte + 1] == b" ":  # not parsed: see `parsed_bytes`
                start, end = self._line_extent(offset)
                ends[start] = end
            elif place.node.type == "comment" and place.node.id not in seen:
                start, end = self._extent(place.node)
                if offset < end:
                    seen.add(place.node.id)
                    ends[start] = end
        targets = [self._target_of(start) for start in ends]
        statement_offsets = sorted({offset for _, offset in targets if offset is not None})
        bytes_ = self._bytes(statement_offsets)
        places = dict(zip(statement_offsets, zip(bytes_, self._places(bytes_), strict=True), strict=True))
        return [
            self._comment(start, end, alone, *(places[offset] if offset is not None else (0, None)))
            for (start, end), (alone, offset) in zip(ends.items(), targets, strict=True)
        ]

    @cached_property
    def first_statement(self) -> int:
        """The offset of the first statement that is no docstring."""
        for index, node in enumerate(n for n in self._tree.root_node.children if n.type != "comment"):
            docstring = index == 0 and node.type == "expression_statement" and node.children[0].type == "string"
            if not docstring:
                return self._offset(node.start_byte)
        return len(self._text)

    def _extent(self, node: Node) -> tuple[int, int]:
        # tree-sitter ends comments at \n only; to Python a lone \r ends the line too.
        start, end = self._offset(node.start_byte), self._offset(node.end_byte)
        broken = self._text.find("\r", start, end)
        return start, end if broken < 0 else broken

    def _line_extent(self, offset: int) -> tuple[int, int]:
        """The comment that is alone on the line of an offset."""
        begin, end = self._source.extent(self._source.position(offset).line)
        line = self._text[begin:end]
        return begin + len(line) - len(line.lstrip()), end

    def _target_of(self, start: int) -> tuple[bool, int | None]:
        """Whether the comment at `start` is alone on its line, and where the code is that it is about."""
        line = self._source.position(start).line
        begin = self._source.line_starts[line - 1]
        code = self._text[begin:start].rstrip()
        if code:
            return False, begin + len(code) - 1
        number = self._code_line_below(line)
        text = self._source.line(number)
        return True, self._source.line_starts[number - 1] + len(text) - len(text.lstrip()) if text.strip() else None

    def _code_line_below(self, line: int) -> int:
        """The first line below `line` that is no comment."""
        passed = []
        while True:
            passed.append(line)
            line += 1
            if line in self._code_lines:
                line = self._code_lines[line]
                break
            if not self._source.line(line).lstrip().startswith("#"):
                break
        self._code_lines.update(dict.fromkeys(passed, line))
        return line

    def _comment(self, start: int, end: int, alone: bool, byte: int, place: _CommentPosition | None) -> Comment:
        line = self._source.position(start).line
        if place is None:
            first, last = 0, 0
        elif alone:
            first, last = self._below(byte, place)
        else:
            while not _is_statement(place) and place.above is not None:
                place = place.above
            first, last = self._header(place.node)
            first, last = (first, last) if line in (first, last) else (line, line)
        return Comment(start, end, line, alone, first, last)

    def _below(self, byte: int, place: _CommentPosition) -> tuple[int, int]:
        above, start = place.above, place.node.start_byte
        while above is not None and above.node.start_byte == start and above.node.type not in _BLOCKS:
            place, above = above, above.above
        if start != byte:  # the middle of a string, or broken code
            return self._line(byte), self._line(byte)
        return self._header(place.node)

    def _header(self, node: Node) -> tuple[int, int]:
        """The lines of a statement, for a compound one those of its header only."""
        if node.id not in self._headers:
            inner = node.child_by_field_name("definition") if node.type == "decorated_definition" else None
            last = max(node.end_byte - 1, node.start_byte)
            before: Node | None = None  # the last part of a header: its colon
            for child in (inner or node).children:
                if child.type == "block":
                    last = before.start_byte if before is not None else last
                    break
                before = child if child.type != "comment" or before is None else before
            self._headers[node.id] = self._line(node.start_byte), self._line(last)
        return self._headers[node.id]

    def _places(self, bytes_: Sequence[int]) -> list[_CommentPosition]:
        """The innermost node around each of the bytes, which are sorted."""
        root = _CommentPosition(self._tree.root_node, None)
        found = [root] * len(bytes_)
        stack = [(root, 0, len(bytes_))]
        while stack:
            place, at, end = stack.pop()
            for child in place.node.children if at < end else ():
                begin = at = _passed(bytes_, child.start_byte, at, end)
                at = _passed(bytes_, child.end_byte, at, end)
                if begin < at:
                    inner = _CommentPosition(child, place)
                    found[begin:at] = [inner] * (at - begin)
                    stack.append((inner, begin, at))
                if at == end:
                    break
        return found

    @cached_property
    def _line_bytes(self) -> list[int]:
        """At which byte each line begins."""
        if self._text.isascii():
            return list(self._source.line_starts)
        starts = [*self._source.line_starts, len(self._text)]
        return list(accumulate((_size(self._text[a:b]) for a, b in pairwise(starts)), initial=0))[:-1]

    def _bytes(self, offsets: Sequence[int]) -> list[int]:
        """The bytes of the tree at offsets into the text, which are sorted."""
        if self._text.isascii():
            return list(offsets)
        return list(accumulate(_size(self._text[a:b]) for a, b in pairwise((0, *offsets))))

    def _line(self, byte: int) -> int:
        return bisect_right(self._line_bytes, byte)

    def _offset(self, byte: int) -> int:
        if self._text.isascii():
            return byte
        line = self._line(byte)
        before = self._source.line(line).encode("utf-8", "surrogatepass")[: byte - self._line_bytes[line - 1]]
        return self._source.line_starts[line - 1] + len(before.decode("utf-8", "surrogatepass"))


def _passed(values: Sequence[int], limit: int, at: int, end: int) -> int:
    """The index from `at` on of the first value that is not below `limit`."""
    while at < end and values[at] < limit:
        at += 1
    return at


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _is_statement(place: _CommentPosition) -> bool:
    return place.node.type in _CLAUSES or place.above is None or place.above.node.type in _BLOCKS
