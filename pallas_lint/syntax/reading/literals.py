"""Numbers and strings, from tree-sitter's nodes to ours."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.syntax import nodes
from pallas_lint.syntax.reading import kinds
from pallas_lint.syntax.reading.tokens import Reader, SourceText, expression, parts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

_INTEGER = re.compile(r"(?:0(?:_?0)*|[1-9](?:_?\d)*|0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+)\Z")
_DIGITS = r"\d(?:_?\d)*"
_FLOAT = re.compile(
    rf"(?:(?:{_DIGITS}\.(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][-+]?{_DIGITS})?|{_DIGITS}[eE][-+]?{_DIGITS})\Z"
)
_PLAIN_PREFIXES = frozenset(("", "r", "b", "u", "br", "rb"))
_FORMATTED_PREFIXES = frozenset(("f", "fr", "rf"))


def _number(text: SourceText, node: Node) -> nodes.BaseExpression:
    at, to = node.start_byte, node.end_byte
    value = text[at:to].decode()
    if _INTEGER.match(value):
        return nodes.Integer(at, to, value)
    if value[-1] in "jJ":
        if not _FLOAT.match(value[:-1]) and not re.match(_DIGITS + r"\Z", value[:-1]):
            raise ValueError(value)
        return nodes.Imaginary(at, to, value)
    if not _FLOAT.match(value):
        raise ValueError(value)
    return nodes.Float(at, to, value)


def _string(text: SourceText, node: Node) -> nodes.SimpleString | nodes.FormattedString:
    start = node.children[0]
    opening = text.of(start)
    prefix = opening.rstrip("\"'").lower()
    if len(opening) - len(prefix) == 1 and b"\n" in text[node.start_byte : node.end_byte].replace(b"\\\n", b""):
        raise ValueError  # the line ends before the string does
    if prefix in _PLAIN_PREFIXES:
        return nodes.SimpleString(node.start_byte, node.end_byte, text.of(node))
    if prefix not in _FORMATTED_PREFIXES:
        raise ValueError(prefix)
    end = node.children[-1]
    found = _formatted_parts(text, node.children[1:-1], start.end_byte, end.start_byte)
    return nodes.FormattedString(node.start_byte, node.end_byte, found, opening, text.of(end))


def _formatted_parts(
    text: SourceText, children: Iterable[Node], at: int, to: int
) -> list[nodes.BaseFormattedStringContent]:
    found: list[nodes.BaseFormattedStringContent] = []
    for child in children:
        if child.kind_id in (kinds.INTERPOLATION, kinds.FORMAT_EXPRESSION):
            if child.start_byte > at:
                found.append(_formatted_text(text, at, child.start_byte))
            found.append(_interpolation(text, child))
            at = child.end_byte
    if to > at:
        found.append(_formatted_text(text, at, to))
    return found


def _formatted_text(text: SourceText, at: int, to: int) -> nodes.FormattedStringText:
    return nodes.FormattedStringText(at, to, text[at:to].decode())


def _interpolation(text: SourceText, node: Node) -> nodes.FormattedStringExpression:
    _, inner, *rest = parts(node)
    if inner.kind_id == kinds.NAMED_EXPRESSION or b"lambda" in text[inner.start_byte : inner.end_byte]:
        raise ValueError  # to Python `=`, or the colon, begins the format here
    equal = conversion = None
    spec: list[nodes.BaseFormattedStringContent] | None = None
    for child in rest[:-1]:
        if child.kind_id == kinds.EQUALS:
            equal = nodes.AssignEqual(child.start_byte, child.end_byte)
        elif child.kind_id == kinds.TYPE_CONVERSION:
            conversion = text.of(child)[1:]
        elif child.kind_id == kinds.FORMAT_SPECIFIER:
            spec = _formatted_parts(text, child.children[1:], child.start_byte + 1, child.end_byte)
        else:
            raise ValueError(text.of(child))
    value = expression(text, inner)
    return nodes.FormattedStringExpression(node.start_byte, node.end_byte, value, conversion, spec, equal)


def _concatenated(text: SourceText, node: Node) -> nodes.BaseExpression:
    *strings, last = (_string(text, child) for child in parts(node))
    if len({_is_bytes(string) for string in (*strings, last)}) > 1:
        raise ValueError
    result: nodes.SimpleString | nodes.FormattedString | nodes.ConcatenatedString = last
    for string in reversed(strings):
        result = nodes.ConcatenatedString(string.at, last.to, string, result)
    return result


def _is_bytes(string: nodes.SimpleString | nodes.FormattedString) -> bool:
    return isinstance(string, nodes.SimpleString) and "b" in string.value.partition(string.quote)[0].lower()


READERS: dict[str, Reader] = {
    "integer": _number,
    "float": _number,
    "string": _string,
    "concatenated_string": _concatenated,
}
