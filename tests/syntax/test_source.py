"""Bytes to text and back; offsets to positions and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pallas_lint.finding import Position
from pallas_lint.text.source import Replacement, Source, SourceError

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = st.text(st.sampled_from("ab \t\f\n\ré日🚀\u2028\x0b#'"), max_size=60)


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"x = 1\n", "x = 1\n", "utf-8"),
        (b"", "", "utf-8"),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n", "utf-8-sig"),
        (b"\xef\xbb\xbf# coding: utf-8\n", "# coding: utf-8\n", "utf-8-sig"),
        (b"# -*- coding: latin-1 -*-\n# \xe9\n", "# -*- coding: latin-1 -*-\n# é\n", "iso-8859-1"),
        (b"#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\n# \x80\n", None, "cp1252"),
        ("x = 'é'\r\n".encode(), "x = 'é'\r\n", "utf-8"),
        (b"x = 1\ry = 2\r", "x = 1\ry = 2\r", "utf-8"),
    ],
)
def test_decoding_and_the_way_back(data: bytes, text: str | None, encoding: str) -> None:
    source = Source.from_bytes(data, "a.py")
    assert source.encoding == encoding
    if text is not None:
        assert source.text == text
    assert source.data == data


@pytest.mark.parametrize(
    ("data", "message", "line"),
    [
        (b"\xff\xfex\0", "UTF-16", None),
        (b"\xfe\xff\0x", "UTF-16", None),
        (b"x = 1\0", "binary", None),
        (b"# coding: klingon\n", "klingon", 1),
        (b"# coding: rot13\n", "rot13", 1),
        (b"# coding: undefined\n", "undefined", 1),
        (b"\xef\xbb\xbf# coding: latin-1\n", "encoding", 1),
        (b"x = 1\n\r\n# \xff\n", "not valid utf-8", 3),
        (b"a\rb\r\xff", "not valid utf-8", 3),
    ],
)
def test_unreadable_input_has_a_reason_and_a_place(data: bytes, message: str, line: int | None) -> None:
    with pytest.raises(SourceError) as caught:
        Source.from_bytes(data, "a.py")
    assert message in caught.value.message
    assert caught.value.line == line


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot read the file"):
        Source.read(tmp_path / "gone.py", "gone.py")
    with pytest.raises(SourceError, match="cannot read the file"):
        Source.read(tmp_path, "folder")


def test_a_character_that_the_encoding_cannot_hold() -> None:
    source = Source.from_bytes(b"# coding: latin-1\n", "a.py")
    with pytest.raises(UnicodeEncodeError):
        assert source.edited([Replacement(0, 0, "日")]).data


def test_lines_end_as_in_python() -> None:
    source = Source("a.py", "a\fb\u2028c\x0bd\r\ne\rf\n\ng")
    assert [source.line(number) for number in range(1, source.line_count + 1)] == [
        "a\fb\u2028c\x0bd",
        "e",
        "f",
        "",
        "g",
    ]
    assert source.line(0) == source.line(6) == ""
    assert source.lines(1, 2) == "a\fb\u2028c\x0bd\r\ne\r"
    assert source.lines(3, 9) == "f\n\ng"


@given(TEXTS)
def test_lines_and_lines_ends_make_the_text(text: str) -> None:
    source = Source("a.py", text)
    assert source.lines(1, source.line_count) == text
    assert "".join(source.lines(number, number) for number in range(1, source.line_count + 1)) == text


@given(TEXTS)
def test_every_offset_has_its_position(text: str) -> None:
    source = Source("a.py", text)
    positions = [source.position(offset) for offset in range(len(text) + 1)]
    assert [source.offset(position) for position in positions] == list(range(len(text) + 1))
    assert positions == sorted(positions)
    for offset, position in enumerate(positions):
        if offset < len(text) and text[offset] not in "\r\n":
            assert source.line(position.line)[position.column - 1] == text[offset]


@given(TEXTS, st.integers(1, 70), st.integers(1, 70))
def test_a_position_outside_is_clamped(text: str, line: int, column: int) -> None:
    source = Source("a.py", text)
    assert 0 <= source.offset(Position(line, column)) <= len(text)
