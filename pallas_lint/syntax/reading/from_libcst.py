"""libcst's tree as ours, for code that tree-sitter's grammar does not know."""

from __future__ import annotations

from typing import Any

import libcst as cst

from pallas_lint.syntax import nodes
from pallas_lint.syntax.positions import offsets

# A t-string has the parts of an f-string.
_LIKE = {
    "TemplatedString": nodes.FormattedString,
    "TemplatedStringExpression": nodes.FormattedStringExpression,
    "TemplatedStringText": nodes.FormattedStringText,
}
_NONE = (cst.MaybeSentinel.DEFAULT, None)


class UnknownSyntax(Exception):
    """A kind of node that has no counterpart among ours: syntax of a newer Python."""


def converted(module: cst.Module, text: str) -> nodes.Module:
    """The module that was parsed from `text`. Raises UnknownSyntax."""
    places = offsets(module, text)
    starts = _byte_offsets(text)

    def made(value: Any) -> Any:
        if isinstance(value, cst.CSTNode):
            name = value.__class__.__name__
            kind = _LIKE.get(name) or getattr(nodes, name, None)
            if kind is None:
                raise UnknownSyntax(name)
            at, to = places[id(value)]
            given = [made(getattr(value, name)) for name in kind.fields if name != "comma"]
            if isinstance(value, cst.SubscriptElement):
                given.append(isinstance(value.comma, cst.Comma))
            return kind(starts[at], starts[to], *given)
        if isinstance(value, list | tuple):
            return [made(item) for item in value]
        return None if value in _NONE else value

    result: nodes.Module = made(module)
    return result


def _byte_offsets(text: str) -> range | list[int]:
    """The byte at which each character begins, and the number of bytes."""
    if text.isascii():
        return range(len(text) + 1)
    found = [0]
    for character in text:
        found.append(found[-1] + len(character.encode("utf-8", "surrogatepass")))
    return found
