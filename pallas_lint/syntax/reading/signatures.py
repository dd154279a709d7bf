"""Lambdas, parameters and annotations, from tree-sitter's nodes to ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.syntax import nodes
from pallas_lint.syntax.reading import kinds
from pallas_lint.syntax.reading.expressions import subscript_elements
from pallas_lint.syntax.reading.tokens import Reader, SourceText, exactly, expression, only_name, parts, separated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node


def _lambda(text: SourceText, node: Node) -> nodes.Lambda:
    _, *given, _, body = parts(node)
    if given:
        (inside,) = given
        params = parameters(text, separated(inside.children), inside.start_byte, inside.end_byte)
    else:
        params = nodes.Parameters(node.start_byte, node.start_byte, [], None, [], None, [])
    return nodes.Lambda(node.start_byte, node.end_byte, params, expression(text, body))


def parameters(text: SourceText, children: Iterable[Node], at: int, to: int) -> nodes.Parameters:
    plain: list[nodes.Param] = []
    positional_only: list[nodes.Param] = []
    keyword_only: list[nodes.Param] = []
    star: nodes.Param | nodes.ParamStar | None = None
    rest: nodes.Param | None = None
    for child in children:
        if rest is not None:
            raise ValueError  # nothing may follow `**kwargs`
        if child.kind_id == kinds.POSITIONAL_SEPARATOR:
            if positional_only or not plain or star is not None:
                raise ValueError
            positional_only, plain = plain, []
        elif child.kind_id == kinds.KEYWORD_SEPARATOR:
            if star is not None:
                raise ValueError
            star = nodes.ParamStar(child.start_byte, child.end_byte)
        else:
            parameter = _parameter(text, child)
            if parameter.star == "**":
                rest = parameter
            elif parameter.star == "*":
                if star is not None:
                    raise ValueError
                star = parameter
            elif star is not None:
                keyword_only.append(parameter)
            else:
                before = [*positional_only, *plain]
                if parameter.default is None and before and before[-1].default is not None:
                    raise ValueError  # the one before has a default
                plain.append(parameter)
    if isinstance(star, nodes.ParamStar) and not keyword_only:
        raise ValueError
    return nodes.Parameters(at, to, plain, star, keyword_only, rest, positional_only)


_STARS = {kinds.LIST_SPLAT_PATTERN: "*", kinds.DICTIONARY_SPLAT_PATTERN: "**"}


def _parameter(text: SourceText, node: Node) -> nodes.Param:
    annotation = default = None
    named = node
    if node.kind_id == kinds.DEFAULT_PARAMETER:
        named, _, value = exactly(node, 3)
        default = expression(text, value)
    elif node.kind_id == kinds.TYPED_PARAMETER:
        named, _, type_ = exactly(node, 3)
        annotation = annotated(text, type_)
    elif node.kind_id == kinds.TYPED_DEFAULT_PARAMETER:
        named, _, type_, _, value = exactly(node, 5)
        annotation, default = annotated(text, type_), expression(text, value)
    at, to, star = named.start_byte, named.end_byte, _STARS.get(named.kind_id, "")
    if star:
        if default is not None:
            raise ValueError
        _, named = exactly(named, 2)
    if star != "*" and annotation is not None and isinstance(annotation.annotation, nodes.StarredElement):
        raise ValueError
    return nodes.Param(at, to, only_name(text, named), annotation, default, star)


def annotated(text: SourceText, node: Node) -> nodes.Annotation:
    (inner,) = exactly(node, 1)
    read = _starred_type if inner.kind_id == kinds.SPLAT_TYPE else expression
    return nodes.Annotation(node.start_byte, node.end_byte, read(text, inner))


def _type(text: SourceText, node: Node) -> nodes.BaseExpression:
    (inner,) = exactly(node, 1)
    return expression(text, inner)


def _generic_type(text: SourceText, node: Node) -> nodes.Subscript:
    value, given = exactly(node, 2)
    slices = subscript_elements(text, parts(given)[1:-1])
    return nodes.Subscript(node.start_byte, node.end_byte, expression(text, value), slices)


def _union_type(text: SourceText, node: Node) -> nodes.BaseExpression:
    """`A | B | C`, which tree-sitter groups from the right."""
    first, *rest = _united(node)
    result = expression(text, first)
    for token, operand in zip(rest[::2], rest[1::2], strict=True):
        operator = nodes.BitOr(token.start_byte, token.end_byte)
        result = nodes.BinaryOperation(node.start_byte, operand.end_byte, result, operator, expression(text, operand))
    return result


def _united(node: Node) -> list[Node]:
    """The operands of `|`, with the tokens between them."""
    if node.kind_id == kinds.TYPE:
        (inner,) = exactly(node, 1)
        return _united(inner) if inner.kind_id in (kinds.UNION_TYPE, kinds.BINARY_OPERATOR) else [node]
    if node.kind_id != kinds.UNION_TYPE and not (
        node.kind_id == kinds.BINARY_OPERATOR and exactly(node, 3)[1].kind_id == kinds.BAR
    ):
        return [node]
    left, token, right = exactly(node, 3)
    return [*_united(left), token, *(_united(right) if right.kind_id == kinds.TYPE else [right])]


def _starred_type(text: SourceText, node: Node) -> nodes.StarredElement:
    star, value = exactly(node, 2)
    if star.kind_id != kinds.STAR:
        raise ValueError
    return nodes.StarredElement(node.start_byte, node.end_byte, expression(text, value))


READERS: dict[str, Reader] = {
    "lambda": _lambda,
    "type": _type,
    "generic_type": _generic_type,
    "union_type": _union_type,
}
