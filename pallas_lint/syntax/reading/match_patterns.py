"""Patterns of `match` statements, from tree-sitter's nodes to ours; everything else raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.syntax import nodes
from pallas_lint.syntax.reading import kinds
from pallas_lint.syntax.reading.tokens import SourceText, dotted_name, exactly, expression, only_name, parts, separated

if TYPE_CHECKING:
    from collections.abc import Callable

    from tree_sitter import Node


def pattern_of(text: SourceText, head: list[Node]) -> nodes.MatchPattern:
    """The pattern after `case`: one pattern, or several that are a sequence without brackets."""
    if len(head) == 1:
        return pattern(text, head[0])
    elements = [_sequence_element(text, child) for child in separated(head)]
    return nodes.MatchList(head[0].start_byte, head[-1].end_byte, elements)


def pattern(text: SourceText, node: Node) -> nodes.MatchPattern:
    """The pattern of a `case_pattern`, or of its content."""
    if node.kind_id == kinds.CASE_PATTERN:
        children = parts(node)
        if len(children) > 1:
            return _value(text, node)  # a negative number
        (node,) = children
    return _PATTERNS[node.kind_id](text, node)


def _value(text: SourceText, node: Node) -> nodes.MatchValue:
    value = _literal(text, parts(node) if node.kind_id == kinds.CASE_PATTERN else [node])
    return nodes.MatchValue(node.start_byte, node.end_byte, value)


def _literal(text: SourceText, tokens: list[Node]) -> nodes.BaseExpression:
    """A number with its sign, or the sum of two."""
    if tokens[0].kind_id == kinds.COMPLEX_PATTERN:
        tokens = parts(tokens[0])
    if tokens[0].kind_id == kinds.MINUS:
        operand = expression(text, tokens[1])
        minus = nodes.Minus(tokens[0].start_byte, tokens[0].end_byte)
        result: nodes.BaseExpression = nodes.UnaryOperation(minus.at, operand.to, minus, operand)
        rest = tokens[2:]
    else:
        result, rest = expression(text, tokens[0]), tokens[1:]
    if rest:
        token, right = rest
        kind = _SIGNS[token.kind_id]
        operand = expression(text, right)
        if not isinstance(operand, nodes.Imaginary):
            raise ValueError
        operator = kind(token.start_byte, token.end_byte)
        result = nodes.BinaryOperation(result.at, operand.to, result, operator, operand)
    return result


def _singleton(text: SourceText, node: Node) -> nodes.MatchSingleton:
    at, to = node.start_byte, node.end_byte
    return nodes.MatchSingleton(at, to, nodes.Name(at, to, text.of(node)))


def _name(text: SourceText, node: Node) -> nodes.MatchPattern:
    found = dotted_name(text, node)
    if isinstance(found, nodes.Name):
        return nodes.MatchAs(found.at, found.to, None, found)
    return nodes.MatchValue(found.at, found.to, found)


def _anything(text: SourceText, node: Node) -> nodes.MatchAs:
    return nodes.MatchAs(node.start_byte, node.end_byte, None, None)


def _as(text: SourceText, node: Node) -> nodes.MatchAs:
    inner, _, name = exactly(node, 3)
    if text.of(name) == "_":
        raise ValueError
    return nodes.MatchAs(node.start_byte, node.end_byte, pattern(text, inner), only_name(text, name))


def _union(text: SourceText, node: Node) -> nodes.MatchOr:
    groups: list[list[Node]] = [[]]
    for child in parts(node):
        if child.kind_id == kinds.BAR:
            groups.append([])
        else:
            groups[-1].append(child)
    elements: list[nodes.MatchOrElement] = []
    for group in groups:
        at, to = group[0].start_byte, group[-1].end_byte
        inner = (
            nodes.MatchValue(at, to, _literal(text, group))
            if len(group) > 1
            else _PATTERNS[group[0].kind_id](text, group[0])
        )
        elements.append(nodes.MatchOrElement(at, to, inner))
    return nodes.MatchOr(node.start_byte, node.end_byte, elements)


def _sequence_element(text: SourceText, node: Node) -> nodes.MatchSequenceElement | nodes.MatchStar:
    at, to = node.start_byte, node.end_byte
    (only,) = parts(node) if node.kind_id == kinds.CASE_PATTERN and node.child_count == 1 else (node,)
    if only.kind_id == kinds.SPLAT_PATTERN:
        star, name = exactly(only, 2)
        if star.kind_id != kinds.STAR:
            raise ValueError
        return nodes.MatchStar(at, to, None if name.kind_id == kinds.UNDERSCORE else only_name(text, name))
    return nodes.MatchSequenceElement(at, to, pattern(text, node))


def _list(text: SourceText, node: Node) -> nodes.MatchList:
    elements = [_sequence_element(text, child) for child in separated(node.children[1:-1])]
    return nodes.MatchList(node.start_byte, node.end_byte, elements)


def _tuple(text: SourceText, node: Node) -> nodes.MatchPattern:
    inner = parts(node)[1:-1]
    if len(inner) == 1:
        return pattern(text, inner[0])
    at, to = (inner[0].start_byte, inner[-1].end_byte) if inner else (node.end_byte - 1,) * 2
    return nodes.MatchTuple(at, to, [_sequence_element(text, child) for child in separated(inner)])


def _class(text: SourceText, node: Node) -> nodes.MatchClass:
    named, opening, *inside, _ = parts(node)
    if opening.kind_id != kinds.PARENTHESIS:
        raise ValueError
    patterns: list[nodes.MatchSequenceElement] = []
    keywords: list[nodes.MatchKeywordElement] = []
    for child in separated(inside):
        (only,) = parts(child) if child.child_count == 1 else (child,)
        if only.kind_id == kinds.KEYWORD_PATTERN:
            key, _, *value = parts(only)
            inner: nodes.MatchPattern
            if len(value) > 1:
                inner = nodes.MatchValue(value[0].start_byte, value[-1].end_byte, _literal(text, value))
            else:
                inner = _PATTERNS[value[0].kind_id](text, value[0])
            keywords.append(nodes.MatchKeywordElement(only.start_byte, only.end_byte, only_name(text, key), inner))
        elif keywords:
            raise ValueError
        else:
            patterns.append(nodes.MatchSequenceElement(child.start_byte, child.end_byte, pattern(text, child)))
    return nodes.MatchClass(node.start_byte, node.end_byte, dotted_name(text, named), patterns, keywords)


def _mapping(text: SourceText, node: Node) -> nodes.MatchMapping:
    elements: list[nodes.MatchMappingElement] = []
    rest = None
    inside = [child for child in parts(node)[1:-1] if child.kind_id != kinds.COMMA]
    while inside:
        first = inside.pop(0)
        if first.kind_id == kinds.SPLAT_PATTERN:
            star, name = exactly(first, 2)
            if star.kind_id != kinds.DOUBLE_STAR or inside:
                raise ValueError
            rest = only_name(text, name)
            break
        key = [first]
        while inside[0].kind_id != kinds.COLON:
            key.append(inside.pop(0))
        _, value = inside.pop(0), inside.pop(0)
        spelled = dotted_name(text, first) if first.kind_id == kinds.DOTTED_NAME else _literal(text, key)
        elements.append(nodes.MatchMappingElement(first.start_byte, value.end_byte, spelled, pattern(text, value)))
    return nodes.MatchMapping(node.start_byte, node.end_byte, elements, rest)


_SIGNS: dict[int, type[nodes.Add | nodes.Subtract]] = kinds.by_kind({"+": nodes.Add, "-": nodes.Subtract})
_READERS: dict[str, Callable[[SourceText, Node], nodes.MatchPattern]] = {
    "integer": _value,
    "float": _value,
    "string": _value,
    "concatenated_string": _value,
    "complex_pattern": _value,
    "true": _singleton,
    "false": _singleton,
    "none": _singleton,
    "dotted_name": _name,
    "_": _anything,
    "as_pattern": _as,
    "union_pattern": _union,
    "list_pattern": _list,
    "tuple_pattern": _tuple,
    "class_pattern": _class,
    "dict_pattern": _mapping,
}
_PATTERNS = kinds.by_kind(_READERS)
