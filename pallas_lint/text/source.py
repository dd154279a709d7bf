"""Bytes to text: one decoded file, its lines, and the way back to bytes."""

from __future__ import annotations

import codecs
import io
import re
import tokenize
from bisect import bisect_right
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from pallas_lint.finding import Position
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.records import define, frozen
from pallas_lint.text import files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pallas_lint.finding import Finding, Span

MAX_CODE_BYTES = 8 << 20  # bytes or characters: judging takes 125 bytes of memory for each
_LINE_END = re.compile(r"\r\n|\n|\r")


class SourceError(Exception):
    """The file cannot be read as Python text. `line` is where, when one line is to blame."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@frozen
class SyntaxProblem:
    """Where and why something does not parse. `limit`: the code may be right, it is we who cannot take it."""

    position: Position
    message: str
    limit: bool = False


@frozen(order=True)
class Replacement:
    """One edit in offsets of a text."""

    start: int
    end: int
    text: str


@define(slots=False)
class Source:
    """The text of one file, newlines as they stand in it. A notebook (`pallas_lint.notebooks`) is a kind of it.

    `path` is as the user reads it; `encoding` is the codec to write the file back with ("utf-8-sig" keeps a BOM).
    `problems` are what does not parse and was left out of `text`; `note` is why the file is not judged at all.
    """

    path: str
    text: str
    encoding: str = "utf-8"
    problems: tuple[SyntaxProblem, ...] = ()
    note: str | None = None

    @classmethod
    def read(cls, file: Path, shown: str) -> Source:
        """Read and decode `file`. Raises SourceError with one clear sentence."""
        try:
            data = files.read(file)
        except OSError as error:
            raise SourceError(f"cannot read the file: {error.strerror or error}") from error
        return cls.from_bytes(data, shown)

    @classmethod
    def from_bytes(cls, data: bytes, shown: str) -> Source:
        """Decode as Python does: BOM, then the declared encoding (PEP 263), then UTF-8. Raises SourceError."""
        if len(data) > MAX_CODE_BYTES:
            raise SourceError(f"the file is larger than {format_bytes(MAX_CODE_BYTES)}")
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise SourceError("the file is UTF-16; Python source must be UTF-8 or declare its encoding")
        if b"\0" in data[:8192]:
            raise SourceError("the file is binary (it contains NUL bytes)")
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except SyntaxError as error:
            if data[:200].isascii() or b"coding" in data[:200]:
                raise SourceError(str(error), 1) from error
            encoding = "utf-8"  # Python's own message is about the declaration; the place of the failure shows more
        try:
            return cls(shown, data.decode(encoding), encoding)
        except UnicodeDecodeError as error:
            line = len(_LINE_END.findall(data[: error.start].decode("latin-1"))) + 1
            raise SourceError(f"the file is not valid {encoding}: {error.reason}", line) from error
        except (LookupError, UnicodeError) as error:
            # Codecs that turn bytes into no text ("hex"), or that refuse to work at all ("undefined").
            raise SourceError(
                f"the file declares the encoding {encoding}, which is none for Python source", 1
            ) from error

    @property
    def data(self) -> bytes:
        """What the file holds. Raises UnicodeEncodeError if its encoding has no bytes for a character."""
        return self.text.encode(self.encoding)

    def edited(self, replacements: Iterable[Replacement]) -> Source:
        """The source with replacements that are sorted and do not overlap."""
        parts: list[str] = []
        position = 0
        for replacement in replacements:
            parts += (self.text[position : replacement.start], replacement.text)
            position = replacement.end
        return Source(self.path, "".join((*parts, self.text[position:])), self.encoding)

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """What it consists of for a reader, as written: name and text."""
        return ((self.path, self.text),)

    @property
    def written(self) -> str:
        """`text` as the user wrote it."""
        return self.text

    def with_cell_positions(self, finding: Finding) -> Finding:
        """A finding as it can be handed out: with fixes that can be applied."""
        return finding

    def to_cell(self, span: Span) -> Span:
        """A place in `text` as the user finds it."""
        return span

    def line_as_written(self, number: int, cell: int | None = None) -> str:
        """A line as the user wrote it: of a notebook's cell where one is named."""
        return self.line(number)

    def describe_line(self, line: int) -> str:
        """The name of a line in a message."""
        return f"line {line}"

    def moment_after(self, line: int) -> int | None:
        """The line by which what is defined at `line` has been tried out; None where only the end of the file is."""
        return None

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of each line's first character; Python's line ends only (no form feeds or U+2028)."""
        return _line_starts(self.text)

    @property
    def line_count(self) -> int:
        return len(self.line_starts)

    def offset(self, position: Position) -> int:
        """Index into `text`; positions past a line's or the file's end are clamped."""
        starts = self.line_starts
        if position.line > len(starts):
            return len(self.text)
        start = starts[position.line - 1]
        limit = starts[position.line] if position.line < len(starts) else len(self.text)
        return min(start + position.column - 1, limit)

    def position(self, offset: int) -> Position:
        line = bisect_right(self.line_starts, offset)
        return Position(line, offset - self.line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """Line `number` (from 1) without its line end; empty past the end."""
        start, end = self.extent(number) if 1 <= number <= len(self.line_starts) else (0, 0)
        return self.text[start:end]

    def extent(self, number: int) -> tuple[int, int]:
        """Where line `number` (from 1) begins and where it ends without its line end."""
        starts, text = self.line_starts, self.text
        end = starts[number] if number < len(starts) else len(text)
        if number < len(starts):
            end -= 2 if text[end - 2 : end] == "\r\n" else 1
        return starts[number - 1], end

    def lines(self, first: int, last: int) -> str:
        """The text of lines `first` to `last` (from 1, inclusive), line ends included."""
        starts = self.line_starts
        end = starts[last] if last < len(starts) else len(self.text)
        return self.text[starts[first - 1] : end]


@lru_cache(maxsize=2)  # a text that is edited is in several sources
def _line_starts(text: str) -> list[int]:
    if "\r" in text:
        return [0, *(match.end() for match in _LINE_END.finditer(text))]
    lengths = map(len, text.split("\n")[:-1])
    return [0, *accumulate(map((1).__add__, lengths))]
