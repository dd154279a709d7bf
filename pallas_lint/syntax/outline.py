"""The outline of a file: its top-level pieces and imports, from a parse that survives broken and newer code.

tree-sitter finds where each statement begins and ends (3 ms per 1000 lines, whatever the running Python's grammar);
libcst then parses only the pieces that are needed.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pallas_lint.finding import Position
from pallas_lint.records import define, field, frozen
from pallas_lint.syntax.parser import parsed_bytes, parser
from pallas_lint.syntax.piece import Kind, Piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter

    from pallas_lint.text.source import Source

_KINDS: dict[str, Kind] = {
    "import_statement": "import",
    "import_from_statement": "import",
    "future_import_statement": "import",
    "function_definition": "def",
    "class_definition": "class",
    "if_statement": "block",
    "try_statement": "block",
    "with_statement": "block",
    "for_statement": "block",
    "while_statement": "block",
    "match_statement": "block",
}
_STATEMENT_START = re.compile(
    r"(?:@|(?:async[ \t]+)?(?:def|class|import|from|if|try|with|for|while)\b|[^\W\d]\w*[ \t]*=)"
)
_DEFINITION = re.compile(r"(?:async[ \t]+)?(def|class)[ \t]+(\w+)")
_HEADER_END = re.compile(r":[ \t]*(?:#|$)")
# Levels of tree-sitter's tree. Kernels as people write them reach 30. libcst parses nested calls in quadratic time and
# overflows the C stack from about a thousand levels on; walking the syntax takes several Python frames a level.
_MAX_DEPTH = 200
SET_MESH = "jax.set_mesh"  # what the statement `jax.set_mesh(mesh)` binds: no variable has such a name
_SETS_MESH = re.compile(r"(?:^|\.)set_mesh$")
DERIVATIVE = ".defvjp"  # what `f.defvjp(forward, backward)` binds at the top level, whatever `f` is called there
_SMALL_CLASS = 40  # lines; below it a class is one piece, cheaper than the bookkeeping of its members


@frozen
class ImportedName:
    """`name` is bound to `target`: the dotted module or member, with leading dots for a relative import."""

    name: str
    target: str


class CodeLine(NamedTuple):
    """A line of a piece, its code and its comment."""

    code: str | None  # None where there is none
    comment: str


class GonePiece(NamedTuple):
    """A piece that is not in the text any more, may come back, and was there so many texts ago."""

    piece: Piece
    ago: int
    lines: list[CodeLine] | None  # None where only the same text can be this piece


class Earlier(Protocol):
    """The pieces of an earlier text."""

    def split(self, root: tree_sitter.Node) -> tuple[list[Piece], list[tree_sitter.Node], list[Piece]]:
        """Pieces that are now at the beginning and at the end of a tree without an error, and the nodes between."""

    def take(self, first: int, last: int, *, nested: bool) -> Piece | None:
        """The piece that was a statement of its own and is now on these lines, moved there."""

    def imports(self, piece: Piece) -> tuple[list[ImportedName], list[str]]:
        """What a piece imports by name, and the modules of which it imports all."""


@define
class Outline:
    pieces: list[Piece] = field(factory=list)
    imports: list[tuple[Piece, ImportedName]] = field(factory=list)  # at the top level, in order
    star_imports: list[tuple[Piece, str]] = field(factory=list)
    tree: tree_sitter.Tree | None = None
    whole: tuple[tree_sitter.Tree, bytes] | None = None  # the last tree without an error, and what it was made of
    earlier: Earlier | None = field(default=None, repr=False)  # only while it is made
    gone: list[GonePiece] = field(factory=list, repr=False)  # pieces of earlier texts

    @property
    def stars(self) -> list[str]:
        """The modules imported with `*`."""
        return [module for _, module in self.star_imports]

    def walk(self) -> Iterator[Piece]:
        """Every piece that is parsed on its own: members in place of the class's body."""
        for piece in self.pieces:
            yield piece
            yield from piece.members


def outline(
    source: Source, parsed: tuple[tree_sitter.Tree, bytes] | None = None, earlier: Earlier | None = None
) -> Outline:
    """The outline of `source`; its tree, with what that was made of, and its pieces may be at hand.

    Never fails, whatever the text.
    """
    tree, data = parsed or _parsed(source.text)
    root = tree.root_node
    result = Outline(tree=tree, whole=None if root.has_error else (tree, data), earlier=earlier)
    if root.is_error:  # not even the statements are separated
        _recover(result, source, (1, source.line_count))
    elif earlier is None or root.has_error:
        _add_statements(result, source, root.children, result.pieces, nested=False)
    else:
        head, nodes, tail = earlier.split(root)
        for piece in head:
            _take_over(result, piece, result.pieces)
        _add_statements(result, source, nodes, result.pieces, nested=False)
        for piece in tail:
            _take_over(result, piece, result.pieces)
    result.earlier = None
    return result


def parses(text: str) -> bool:
    """Whether tree-sitter finds nothing wrong in `text`."""
    return not _parsed(text)[0].root_node.has_error


def _parsed(text: str) -> tuple[tree_sitter.Tree, bytes]:
    data = parsed_bytes(text)
    return parser().parse(data), data


def _add_statements(
    result: Outline,
    source: Source,
    nodes: list[tree_sitter.Node],
    pieces: list[Piece],
    *,
    nested: bool,
    in_tree: bool = True,
) -> None:
    previous: Piece | None = None
    earlier = result.earlier if in_tree else None
    done = 0  # the last line of what is not looked at again: taken as it was, or recovered line by line
    for at, node in enumerate(nodes):
        if node.type in ("comment", "line_continuation") or (not node.is_named and node.type != "ERROR"):
            continue
        first, last = node.start_point.row + 1, _continued(node, source)
        if last <= done:
            continue
        shares_line = previous is not None and first <= previous.last
        if earlier is not None and not shares_line and not node.has_error:
            taken = earlier.take(first, last, nested=nested)
            if taken is not None:
                _take_over(result, taken, pieces)
                previous, done = taken, last
                continue
        if previous is not None and shares_line:
            _add_to_line(previous, node, last)
            _add_imports(result, previous, node, nested)
            continue
        piece = Piece(source, _kind(node), first, last, _bound_names(node), nested=nested, suspect=node.has_error)
        piece.in_tree = in_tree and not node.has_error
        if result.whole is not None and result.earlier is None and not _is_joined(node, source):
            piece.in_file = node
        if node.has_error:
            piece.error_at = _first_error(node, source)
        piece.deep = _deeper_than(node, _MAX_DEPTH) or (node.has_error and _brackets(piece.text) > _MAX_DEPTH)
        if node.has_error and not nested and piece.problem is not None:
            # Text between two broken tokens may contain whole functions: split it where a statement seems to begin.
            # Indented statements after it belong to it.
            indented = takewhile(lambda each: each.start_point.column > 0, nodes[at + 1 :])
            last = max((last, *map(last_line, indented)))
            _recover(result, source, (first, last))
            previous, done = pieces[-1], last
            continue
        _add_imports(result, piece, node, nested)
        if piece.kind == "class" and not nested and (last - first >= _SMALL_CLASS or piece.deep):
            _add_members(result, piece, node, in_tree)
            if piece.members and _is_joined(node, source):
                piece.members[-1].extend(last)
        pieces.append(piece)
        previous = piece


def _add_to_line(previous: Piece, node: tree_sitter.Node, last: int) -> None:
    """Make a statement part of the piece that begins on its line: `a = 1; b = 2` is one piece."""
    previous.extend(last)
    previous.names += _bound_names(node)
    previous.suspect |= node.has_error
    if previous.kind not in ("block", "other", _kind(node)):
        previous.kind = "block"


def _take_over(result: Outline, piece: Piece, pieces: list[Piece]) -> None:
    assert result.earlier is not None
    pieces.append(piece)
    names, stars = result.earlier.imports(piece)
    result.imports += [(piece, name) for name in names]
    result.star_imports += [(piece, star) for star in stars]


def _add_members(result: Outline, piece: Piece, node: tree_sitter.Node, in_tree: bool) -> None:
    definition = _definition(node)
    body = definition.child_by_field_name("body")
    colon = next((child for child in definition.children if child.type == ":"), None)
    if body is None or colon is None or body.start_point.row <= colon.end_point.row:
        return
    piece.header_end = piece.source.offset(_position(piece.source, colon.end_point))
    piece.in_file = None  # only the header is read
    piece.deep = any(_deeper_than(child, _MAX_DEPTH) for child in definition.children if child.id != body.id)
    _add_statements(result, piece.source, body.children, piece.members, nested=True, in_tree=in_tree)


def last_line(node: tree_sitter.Node) -> int:
    """The line, from 1, on which a statement ends."""
    end = node.end_point
    return max(node.start_point.row + 1, end.row + (1 if end.column else 0))


def _continued(node: tree_sitter.Node, source: Source) -> int:
    """The last line of a statement with the blank lines, or the comment, that backslashes at its end join to it.

    From the text: where a tree has errors, not all of its backslashes are nodes, nor the same ones after an edit.
    """
    own = last_line(node)
    if not _is_joined(node, source):
        return own
    for number in range(own + 1, source.line_count + 1):
        text = source.line(number).strip(" \t\f")
        if text != "\\":
            return own if text and not text.startswith("#") else number
    return own


def _is_joined(node: tree_sitter.Node, source: Source) -> bool:
    """Whether a backslash ends the last line of a statement."""
    line = source.line(last_line(node))
    return line.endswith("\\") and line.encode()[node.end_point.column :].strip(b" \t\f") == b"\\"


def _definition(node: tree_sitter.Node) -> tree_sitter.Node:
    if node.type == "decorated_definition":
        return node.child_by_field_name("definition") or node
    return node


def _position(source: Source, point: tree_sitter.Point) -> Position:
    """tree-sitter's row and column, which counts bytes."""
    line = source.line(point.row + 1)
    column = point.column
    if not line.isascii():
        column = len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))
    return Position(point.row + 1, column + 1)


def _deeper_than(node: tree_sitter.Node, limit: int) -> bool:
    """Whether some node below `node` is more than `limit` levels down; subtrees too small for that are not entered.

    In libcst an `elif` is in the `else` of the one before.
    """
    stack = [(node, limit)]
    while stack:
        current, left = stack.pop()
        if left <= 0:
            return True
        if current.type == "if_statement":
            clauses = [child for child in current.children if child.type in ("elif_clause", "else_clause")]
            stack.extend((clause, left - 1 - at) for at, clause in enumerate(clauses))
        stack.extend((child, left - 1) for child in current.children if child.descendant_count >= left)
    return False


def _brackets(text: str) -> int:
    """How deep the brackets of broken code are nested, those in strings included: its tree may be flat."""
    depth = deepest = 0
    for bracket in re.findall(r"[()\[\]{}]", text):
        depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _first_error(node: tree_sitter.Node, source: Source) -> Position | None:
    """The position of the first unexpected token: nearer to the mistake than where libcst gives up.

    None where the whole statement fits nowhere.
    """
    current = node
    while True:
        inner = next((child for child in current.children if child.has_error or child.is_missing), None)
        if current.is_error or current.is_missing or inner is None:
            return None if current.start_byte == node.start_byte else _position(source, current.start_point)
        current = inner


def _kind(node: tree_sitter.Node) -> Kind:
    node = _definition(node)
    if node.type == "expression_statement":
        first = node.children[0].type if node.children else ""
        return "assign" if first in ("assignment", "augmented_assignment") else "other"
    return _KINDS.get(node.type, "other")


def _text(node: tree_sitter.Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _bound_names(node: tree_sitter.Node) -> tuple[str, ...]:
    node = _definition(node)
    if node.type in ("function_definition", "class_definition"):
        name = node.child_by_field_name("name")
        return () if name is None else (_text(name),)
    if node.type != "expression_statement" or not node.children:
        return ()
    if node.children[0].type == "call":
        function = node.children[0].child_by_field_name("function")
        called = "" if function is None else _text(function)
        return (SET_MESH,) if _SETS_MESH.search(called) else (DERIVATIVE,) if called.endswith(DERIVATIVE) else ()
    names: list[str] = []
    target: tree_sitter.Node | None = node.children[0]
    while target is not None and target.type in ("assignment", "augmented_assignment"):
        left = target.child_by_field_name("left")
        if left is not None and left.type in ("identifier", "pattern_list", "tuple_pattern", "list_pattern"):
            names.extend(re.findall(r"[^\W\d]\w*", _text(left)))
        target = target.child_by_field_name("right")
    return tuple(names)


def _add_imports(result: Outline, piece: Piece, node: tree_sitter.Node, nested: bool) -> None:
    """Note what an import statement at the top of the file binds; other statements add nothing."""
    if nested or node.type not in ("import_statement", "import_from_statement"):
        return
    module = node.child_by_field_name("module_name")
    prefix = _text(module) if module is not None else ""
    for child in node.children:
        if child.type == "wildcard_import":
            result.star_imports.append((piece, prefix))
    names: list[str] = []
    for child in node.children_by_field_name("name"):
        if child.type == "aliased_import":
            original, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
            if original is None or alias is None:
                continue
            target, name = _text(original), _text(alias)
        else:
            target = _text(child)
            name = target if prefix else target.split(".", 1)[0]
            target = target if prefix else name
        dotted = f"{prefix}{'' if prefix.endswith('.') else '.'}{target}" if prefix else target
        result.imports.append((piece, ImportedName(name, dotted)))
        names.append(name)
    piece.names += tuple(names)


def _recover(result: Outline, source: Source, lines: tuple[int, int], owner: Piece | None = None) -> None:
    """Cut lines that tree-sitter could make nothing of at those that look like a new statement, and try each alone.

    The pieces go to the outline, or into `owner`, a class of which these are the body.
    """
    pieces, nested = (result.pieces, False) if owner is None else (owner.members, True)
    indent = _indent(source.line(lines[0])) if nested else ""
    for first, last in _cuts(source, lines, indent):
        # Rows are those of the file, without the lines before it being parsed again for each piece.
        root = _parsed(source.lines(first, last))[0].root_node_with_offset(0, (first - 1, 0))
        assert root is not None
        if not root.has_error:
            _add_statements(result, source, root.children, pieces, nested=nested, in_tree=False)
            continue
        piece = _broken(source, first, last, indent)
        piece.error_at = _first_error(root, source)
        piece.deep = _deeper_than(root, _MAX_DEPTH) or _brackets(piece.text) > _MAX_DEPTH
        pieces.append(piece)
        if piece.kind == "class" and not nested:
            _recover_members(result, piece)


def _recover_members(result: Outline, piece: Piece) -> None:
    """Split the body of a broken class where members seem to begin, at the indentation of the first one."""
    source = piece.source
    for header in range(piece.first, piece.last + 1):
        match = _HEADER_END.search(source.line(header))
        if match is not None:
            break
    else:
        return
    body = next((n for n in range(header + 1, piece.last + 1) if source.line(n).strip()), None)
    if body is None or not _indent(source.line(body)):
        return
    piece.header_end = source.line_starts[header - 1] + match.start() + 1
    piece.deep = False
    _recover(result, source, (body, piece.last), piece)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _cuts(source: Source, lines: tuple[int, int], indent: str) -> Iterator[tuple[int, int]]:
    start, last = lines
    for number in range(start + 1, last + 1):
        line = source.line(number)
        begins = line.startswith(indent) and _STATEMENT_START.match(line, len(indent))
        if begins and not source.line(number - 1).startswith(f"{indent}@"):
            yield start, number - 1
            start = number
    yield start, last


def _broken(source: Source, first: int, last: int, indent: str) -> Piece:
    piece = Piece(source, "block", first, last, nested=bool(indent), suspect=True, in_tree=False)
    definition = next((n for n in range(first, last + 1) if not source.line(n).startswith(f"{indent}@")), first)
    match = _DEFINITION.match(source.line(definition), len(indent))
    if match:
        piece.kind, piece.names = "def" if match[1] == "def" else "class", (match[2],)
    return piece
