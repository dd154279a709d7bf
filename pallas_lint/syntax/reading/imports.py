"""Import statements, from tree-sitter's nodes to ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.syntax import nodes
from pallas_lint.syntax.reading import kinds
from pallas_lint.syntax.reading.tokens import SourceText, dotted_name, exactly, only_name, parts, separated

if TYPE_CHECKING:
    from tree_sitter import Node


def import_(text: SourceText, node: Node) -> nodes.Import:
    return nodes.Import(node.start_byte, node.end_byte, _aliases(text, parts(node)[1:]))


def _aliases(text: SourceText, children: list[Node]) -> list[nodes.ImportAlias]:
    if children[0].kind_id == kinds.PARENTHESIS:
        children = children[1:-1]
    elif children[-1].kind_id == kinds.COMMA:
        raise ValueError
    return [_alias(text, child) for child in separated(children)]


def _alias(text: SourceText, node: Node) -> nodes.ImportAlias:
    at, to = node.start_byte, node.end_byte
    if node.kind_id == kinds.DOTTED_NAME:
        return nodes.ImportAlias(at, to, dotted_name(text, node), None)
    original, as_, alias = exactly(node, 3)
    return nodes.ImportAlias(at, to, dotted_name(text, original), as_name(text, as_, only_name(text, alias)))


def as_name(text: SourceText, token: Node, name: nodes.Name | nodes.Tuple | nodes.List) -> nodes.AsName:
    return nodes.AsName(token.start_byte, name.to, name)


def import_from(text: SourceText, node: Node) -> nodes.ImportFrom:
    _, source, _, *rest = parts(node)
    relative: list[nodes.Dot] = []
    module: nodes.Attribute | nodes.Name | None = None
    if source.kind_id == kinds.RELATIVE_IMPORT:
        prefix, *dotted = parts(source)
        relative = [nodes.Dot(child.start_byte, child.end_byte) for child in prefix.children]
        if dotted:
            (name,) = dotted
            module = dotted_name(text, name)
    elif source.kind_id == kinds.FUTURE:
        module = nodes.Name(source.start_byte, source.end_byte, "__future__")
    else:
        module = dotted_name(text, source)
    names: list[nodes.ImportAlias] | nodes.ImportStar
    if rest[0].kind_id == kinds.WILDCARD_IMPORT:
        (star,) = rest
        names = nodes.ImportStar(star.start_byte, star.end_byte)
    else:
        names = _aliases(text, rest)
        if any(isinstance(alias.name, nodes.Attribute) for alias in names):
            raise ValueError
    return nodes.ImportFrom(node.start_byte, node.end_byte, module, names, relative)
