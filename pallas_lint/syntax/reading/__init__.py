"""Text to nodes, by tree-sitter: in a fifth of libcst's time, and without importing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tree_sitter import Point

from pallas_lint.syntax import nodes
from pallas_lint.syntax.parser import parsed_bytes, parser
from pallas_lint.syntax.reading import expressions, literals, signatures
from pallas_lint.syntax.reading.kinds import by_kind
from pallas_lint.syntax.reading.lines import indents
from pallas_lint.syntax.reading.statements import block
from pallas_lint.syntax.reading.tokens import EXPRESSIONS, SourceText

if TYPE_CHECKING:
    from tree_sitter import Node

EXPRESSIONS.update(by_kind({**literals.READERS, **expressions.READERS, **signatures.READERS}))


def read(text: str, known: Node | None = None, member: int = 0) -> nodes.Module | None:
    """The statements of a text; None where tree-sitter finds an error in it, or where it may be no Python.

    `known` is the only one, in the tree of a longer text without an error: then nothing is parsed. So many bytes of the
    text are an `if 1:` around it, where it is the member of a class.
    """
    data = parsed_bytes(text)
    if known is None:
        root = parser().parse(data).root_node
        if root.has_error:
            return None
        children, member = root.children, 0
    else:
        children = [_moved(known, member)]
    source = SourceText(data)
    source.indents, source.begun = indents(data), int(member > 0)
    try:
        statements = block(source, children, None if member else b"")
    except (KeyError, ValueError, IndexError):
        return None
    if source.begun != len(source.indents):
        return None
    if member:
        body = nodes.IndentedBlock(statements[0].at, statements[-1].to, statements)
        statements = [nodes.If(0, body.to, nodes.Integer(3, 4, "1"), body, None)]
    return nodes.Module(0, len(data), statements)


def _moved(node: Node, to: int) -> Node:
    """The node at its position when its line begins with the byte `to`."""
    # A new node: one whose children were read has those at their old positions.
    moved = node.walk().node
    assert moved is not None
    row, column = node.start_point
    moved.edit(0, node.start_byte - column, to, Point(0, 0), Point(row, 0), Point(0, 0))
    return moved
