"""Places: LSP counts lines from 0 and columns in the client's units, findings from 1 and in code points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from pallas_lint.finding import Position, Span

if TYPE_CHECKING:
    from pygls.workspace import PositionCodec

    from pallas_lint.source import Source


def to_lsp(source: Source, position: Position, codec: PositionCodec) -> lsp.Position:
    """A place of `source` in the client's units; one past the end of a line is the line's end."""
    text = source.line(position.line) if position.line <= source.line_count else ""
    units = codec.client_num_units(text[: position.column - 1])
    return lsp.Position(line=position.line - 1, character=units)


def range_of(source: Source, span: Span, codec: PositionCodec) -> lsp.Range:
    return lsp.Range(start=to_lsp(source, span.start, codec), end=to_lsp(source, span.end, codec))


def from_lsp(source: Source, position: lsp.Position, codec: PositionCodec) -> Position:
    """The place that a client means; beyond the end of a line or of the file it is the end."""
    number = min(position.line + 1, source.line_count)
    if position.line + 1 > source.line_count:
        return Position(number, len(source.line(number)) + 1)
    text = source.line(number)
    column = units = 0
    for character in text:
        width = codec.client_num_units(character)
        if units + width > position.character:
            break
        units += width
        column += 1
    return Position(number, column + 1)


def touches(span: Span, first: Position, last: Position) -> bool:
    """Whether a span and the range from `first` to `last` share a place, ends included."""
    return span.start <= last and first <= span.end
