"""The outline of a file: its top-level pieces and imports, from a parse that survives broken and newer code.

tree-sitter finds where each statement begins and ends (3 ms per 1000 lines, whatever the running Python's grammar);
libcst then parses only the pieces somebody asks for.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from pallas_lint.finding import Position
from pallas_lint.syntax.piece import Kind, Piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter

    from pallas_lint.source import Source

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
_STATEMENT_START = re.compile(r"(?:@|(?:async[ \t]+)?(?:def|class|import|from|if|try|with|for|while)\b|[^\W\d]\w*[ \t]*=)")
_SMALL_CLASS = 40  # lines; below it a class is one piece, cheaper than the bookkeeping of its members


@frozen
class Import:
    """`name` is bound to `target`: the dotted module or member, with leading dots for a relative import."""

    name: str
    target: str


@define
class Outline:
    pieces: list[Piece] = field(factory=list)
    imports: list[tuple[Piece, Import]] = field(factory=list)  # at the top level, in order
    stars: list[str] = field(factory=list)  # modules imported with `*`
    tree: tree_sitter.Tree | None = None

    def walk(self) -> Iterator[Piece]:
        """Every piece that is parsed on its own: members in place of the class's body."""
        for piece in self.pieces:
            yield piece
            yield from piece.members


@lru_cache(maxsize=1)
def _parser() -> tree_sitter.Parser:
    import tree_sitter
    import tree_sitter_python

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))


def outline(source: Source) -> Outline:
    """The outline of `source`; never fails, whatever the text."""
    text = source.text
    if "\r" in text:
        # tree-sitter counts lines by \n only; the replacement keeps every offset.
        text = re.sub(r"\r(?!\n)", "\n", text)
    data = text.encode("utf-8", "surrogatepass")
    tree = _parser().parse(data)
    result = Outline(tree=tree)
    _add_statements(result, source, tree.root_node.children, result.pieces, nested=False)
    return result


def _add_statements(
    result: Outline,
    source: Source,
    nodes: list[tree_sitter.Node],
    pieces: list[Piece],
    *,
    nested: bool,
) -> None:
    previous: Piece | None = None
    for node in nodes:
        if node.type in ("comment", "line_continuation") or (not node.is_named and node.type != "ERROR"):
            continue
        first, last = node.start_point.row + 1, _last_line(node)
        if previous is not None and first <= previous.last:
            # `a = 1; b = 2`: statements that share a line are one piece.
            previous.last = max(previous.last, last)
            previous.names += _bound_names(node)
            previous.suspect |= node.has_error
            if previous.kind not in ("block", "other"):
                previous.kind = "block" if _kind(node) != previous.kind else previous.kind
            _add_imports(result, previous, node, nested)
            continue
        piece = Piece(source, _kind(node), first, last, _bound_names(node), nested=nested, suspect=node.has_error)
        if node.has_error:
            piece.error_at = _first_error(node)
        if piece.error_at is not None and not nested and piece.problem is not None:
            # What stands between two broken tokens may be whole functions: cut it where a statement seems to begin.
            for recovered in _recover(source, first, last):
                if recovered.first <= piece.error_at.line <= recovered.last:
                    recovered.error_at = piece.error_at
                pieces.append(recovered)
            previous = pieces[-1]
            continue
        _add_imports(result, piece, node, nested)
        if piece.kind == "class" and not nested and last - first >= _SMALL_CLASS:
            _add_members(result, piece, node)
        pieces.append(piece)
        previous = piece


def _add_members(result: Outline, piece: Piece, node: tree_sitter.Node) -> None:
    definition = _definition(node)
    body = definition.child_by_field_name("body")
    if body is None or body.start_point.row <= definition.start_point.row:
        return
    colon = next((child for child in definition.children if child.type == ":"), None)
    if colon is None:
        return
    piece.header_last = colon.end_point.row + 1
    _add_statements(result, piece.source, body.children, piece.members, nested=True)


def _last_line(node: tree_sitter.Node) -> int:
    end = node.end_point
    return max(node.start_point.row + 1, end.row + (1 if end.column else 0))


def _definition(node: tree_sitter.Node) -> tree_sitter.Node:
    if node.type == "decorated_definition":
        return node.child_by_field_name("definition") or node
    return node


def _first_error(node: tree_sitter.Node) -> Position:
    """Where the first token stands that fits nowhere: nearer to the mistake than where libcst gives up."""
    current = node
    while True:
        inner = next((child for child in current.children if child.has_error or child.is_missing), None)
        if current.is_error or current.is_missing or inner is None:
            return Position(current.start_point.row + 1, current.start_point.column + 1)
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
            result.stars.append(prefix)
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
        result.imports.append((piece, Import(name, dotted)))
        piece.names += (name,)


def _recover(source: Source, first: int, last: int) -> Iterator[Piece]:
    """Cut lines that tree-sitter could make nothing of at the lines that look like a new top-level statement."""
    start = first
    for line in range(first + 1, last + 1):
        if _STATEMENT_START.match(source.line(line)) and not source.line(line - 1).startswith("@"):
            yield _recovered(source, start, line - 1)
            start = line
    yield _recovered(source, start, last)


def _recovered(source: Source, first: int, last: int) -> Piece:
    match = re.match(r"(?:async[ \t]+)?(def|class)[ \t]+(\w+)", source.line(first))
    if match:
        return Piece(source, "def" if match[1] == "def" else "class", first, last, (match[2],), suspect=True)
    return Piece(source, "block", first, last, suspect=True)
