"""Positions: LSP counts lines from 0 and columns in the client's units, findings from 1 and in code points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs
from lsprotocol import types as lsp

from pallas_lint.finding import Position, Span

if TYPE_CHECKING:
    from pygls.workspace import PositionCodec

    from pallas_lint.text.source import Source

T = TypeVar("T")


def to_lsp(source: Source, position: Position, codec: PositionCodec) -> lsp.Position:
    """A place of `source` in the client's units; beyond the end of a line or of the file it is the end."""
    line = min(position.line, source.line_count)
    text = source.line(line)
    if line == position.line:
        text = text[: position.column - 1]
    return lsp.Position(line=line - 1, character=len(text) if text.isascii() else codec.client_num_units(text))


def range_of(source: Source, span: Span, codec: PositionCodec) -> lsp.Range:
    return lsp.Range(start=to_lsp(source, span.start, codec), end=to_lsp(source, span.end, codec))


def from_lsp(source: Source, position: lsp.Position, codec: PositionCodec) -> Position:
    """The place that a client means; beyond the end of a line or of the file it is the end.

    Inside a character of several units it is the character's start.
    """
    number = min(position.line + 1, source.line_count)
    text = source.line(number)
    if position.line + 1 > number:
        return Position(number, len(text) + 1)
    if text.isascii():
        return Position(number, min(position.character, len(text)) + 1)
    column = units = 0
    for character in text:
        units += codec.client_num_units(character)
        if units > position.character:
            break
        column += 1
    return Position(number, column + 1)


def touches(span: Span, first: Position, last: Position) -> bool:
    """Whether a span and the range from `first` to `last` share a place, ends included."""
    return span.start <= last and first <= span.end


def moved(value: T, lines: int) -> T:
    """A message with all its places moved down, at most to the top, but for those that name a document."""
    if isinstance(value, lsp.Position):
        return attrs.evolve(value, line=max(value.line + lines, 0))
    if isinstance(value, list | tuple):
        return [moved(each, lines) for each in value]  # type: ignore[return-value]
    if isinstance(value, lsp.Location) or not attrs.has(type(value)):
        return value
    message: Any = value
    fields = {field.name: getattr(message, field.name) for field in attrs.fields(type(message))}
    changed = {name: moved(each, lines) for name, each in fields.items()}
    copy: T = attrs.evolve(message, **{name: each for name, each in changed.items() if each is not fields[name]})
    return copy
