"""Helpers of all readers: the text, the children of a node, and names.

Unexpected nodes raise KeyError, ValueError or IndexError here. Then libcst parses the code: it reports the error, or
handles what tree-sitter's grammar does not know. tree-sitter accepts more than Python does.
"""

from __future__ import annotations

from keyword import kwlist
from typing import TYPE_CHECKING, TypeAlias

from pallas_lint.syntax import nodes
from pallas_lint.syntax.reading import kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tree_sitter import Node

_KEYWORDS = frozenset(kwlist)


class SourceText(bytes):
    """The text that a tree was made of, and the logical lines of it: where they begin, and how far in."""

    indents: dict[int, bytes]
    begun: int  # how many lines statements and their clauses have begun with so far

    def begin(self, node: Node, indent: bytes | None = None) -> bytes:
        """A line begins with the node, as far in as `indent`; gives the space before it."""
        own = self.indents[node.start_byte]
        if indent is not None and own != indent:
            raise ValueError
        self.begun += 1
        return own

    def of(self, node: Node) -> str:
        return self[node.start_byte : node.end_byte].decode()


Reader: TypeAlias = "Callable[[SourceText, Node], nodes.BaseExpression]"
# What reads each kind of expression, by tree-sitter's number for it. Expressions hold expressions of all kinds, so that
# the package fills this with what its modules have.
EXPRESSIONS: dict[int, Reader] = {}


def expression(text: SourceText, node: Node) -> nodes.BaseExpression:
    return EXPRESSIONS[node.kind_id](text, node)


def parts(node: Node) -> list[Node]:
    """The children without comments and backslashes at the end of a line."""
    return [child for child in node.children if not child.is_extra]


def exactly(node: Node, count: int) -> list[Node]:
    """The children, of which there are so many: comments stand between them in few places."""
    children = node.children
    return children if len(children) == count else parts(node)


def separated(children: Iterable[Node]) -> list[Node]:
    """The nodes between commas; exactly one between two of them."""
    found: list[Node] = []
    open_ = True
    for child in children:
        kind = child.kind_id
        if kind == kinds.COMMA:
            if open_:
                raise ValueError
            open_ = True
        elif not child.is_extra:
            if not open_:
                raise ValueError
            open_ = False
            found.append(child)
    return found


def name(text: SourceText, node: Node) -> nodes.Name:
    at, to = node.start_byte, node.end_byte
    value = text[at:to].decode()
    if value in _KEYWORDS or (not value.isascii() and not value.isidentifier()):
        raise ValueError(value)
    return nodes.Name(at, to, value)


def only_name(text: SourceText, node: Node) -> nodes.Name:
    """The name where only a name is valid."""
    if node.kind_id != kinds.IDENTIFIER:
        raise ValueError(text.of(node))
    return name(text, node)


def dotted_name(text: SourceText, node: Node) -> nodes.Attribute | nodes.Name:
    first, *rest = parts(node)
    result: nodes.Attribute | nodes.Name = only_name(text, first)
    for part in rest[1::2]:
        result = nodes.Attribute(result.at, part.end_byte, result, only_name(text, part))
    return result
