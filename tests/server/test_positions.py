"""Places between client and findings, against positions counted by encoding the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp, range_of, to_lsp
from pygls.workspace import PositionCodec

from pallas_lint.finding import Position, Span
from pallas_lint.text.source import Source
from tests.sampling import examples
from tests.server.reference import ENCODINGS, LINE_END, offsets, position, texts, units

encodings = st.sampled_from(sorted(ENCODINGS))
numbers = st.integers(0, 2**31 - 1) | st.integers(0, 40)


def lsp_position(text: str, offset: int, encoding: str) -> lsp.Position:
    return lsp.Position(**position(text, offset, encoding))


@given(texts, encodings)
def test_every_offset_there_and_back(text: str, encoding: str) -> None:
    source, codec = Source("a.py", text), PositionCodec(encoding)
    for offset in offsets(text):
        place = lsp_position(text, offset, encoding)
        assert to_lsp(source, source.position(offset), codec) == place
        assert source.offset(from_lsp(source, place, codec)) == offset


@given(texts, encodings, numbers, numbers)
def test_any_place_is_one_in_the_text(text: str, encoding: str, line: int, character: int) -> None:
    """Past the end of a line or the text it is the end; inside of a character its start."""
    source, codec = Source("a.py", text), PositionCodec(encoding)
    lines = LINE_END.split(text)
    found = from_lsp(source, lsp.Position(line, character), codec)
    assert found.line == min(line + 1, len(lines))
    content = lines[found.line - 1]
    before = content[: found.column - 1]
    assert len(before) == found.column - 1
    if line >= len(lines) or units(content, encoding) <= character:
        assert before == content
    else:
        after = content[: found.column]
        assert units(before, encoding) <= character < units(after, encoding)


@given(texts, encodings, st.integers(1, 50), st.integers(1, 50))
def test_places_of_findings_are_in_the_text(text: str, encoding: str, line: int, column: int) -> None:
    source, codec = Source("a.py", text), PositionCodec(encoding)
    lines = LINE_END.split(text)
    found = to_lsp(source, Position(line, column), codec)
    assert found.line == min(line, len(lines)) - 1
    content = lines[found.line]
    assert found.character == units(content[: column - 1] if line <= len(lines) else content, encoding)


@examples(30)
@given(encodings)
def test_ranges(encoding: str) -> None:
    text = 'a = "🟦é"; b\r\nc\td\n'
    span = Span("a.py", Position(1, 6), Position(2, 3))
    found = range_of(Source("a.py", text), span, PositionCodec(encoding))
    assert found.start == lsp_position(text, 5, encoding)
    assert found.end == lsp_position(text, text.index("d"), encoding)


@pytest.mark.parametrize(("encoding", "inside"), [("utf-8", (1, 2, 3)), ("utf-16", (1,)), ("utf-32", ())])
def test_inside_of_a_character(encoding: str, inside: tuple[int, ...]) -> None:
    source, codec = Source("a.py", "🟦x"), PositionCodec(encoding)
    for character in inside:
        assert from_lsp(source, lsp.Position(0, character), codec) == Position(1, 1)
    assert from_lsp(source, lsp.Position(0, len(inside) + 1), codec) == Position(1, 2)
