"""Markdown files: their fenced blocks of Python as one module, at the places where they stand."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property
from typing import TYPE_CHECKING

from pallas_lint.notebooks.magics import blank
from pallas_lint.records import define
from pallas_lint.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.text.source import Replacement

_OPENING = re.compile(r"^( {0,12})(`{3,}|~{3,})[ \t]*\{?\.?(?:python3?|py)\b[^\n`]*\r?$", re.MULTILINE)
_LEAD = "if 1:"  # in place of the fence of a block that is indented, as in a list


@define(slots=False)
class Markdown(Source):
    """The text of a Markdown file in which all but its blocks of Python is blank. `document` is the file as written.

    Blocks that do not parse are blank, too: much of what documentation shows is no whole module.
    """

    document: str = ""
    ends: tuple[int, ...] = ()  # offsets at which its blocks end

    @classmethod
    def from_bytes(cls, data: bytes, shown: str) -> Markdown:
        """Decode and read it. Raises SourceError."""
        source = Source.from_bytes(data, shown)
        return cls.of(shown, source.text, source.encoding)

    @classmethod
    def of(cls, shown: str, document: str, encoding: str = "utf-8") -> Markdown:
        parts: list[str] = []
        ends: list[int] = []
        end = 0
        for fence, start, stop, lead in _blocks(document):
            parts += (
                blank(document[end:fence]),
                lead,
                blank(document[fence + len(lead) : start]),
                document[start:stop],
            )
            end = stop
            ends.append(stop)
        text = "".join((*parts, blank(document[end:])))
        return cls(shown, text, encoding, document=document, ends=tuple(ends))

    @property
    def data(self) -> bytes:
        return self.document.encode(self.encoding)

    def edited(self, replacements: Iterable[Replacement]) -> Markdown:
        changed = Source(self.path, self.document, self.encoding).edited(replacements)
        return Markdown.of(self.path, changed.text, self.encoding)

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        return ((self.path, self.document),)

    @property
    def written(self) -> str:
        return self.document

    def line_as_written(self, number: int, cell: int | None = None) -> str:
        start, end = self.extent(number) if 1 <= number <= self.line_count else (0, 0)
        return self.document[start:end]

    @cached_property
    def _last_lines(self) -> list[int]:
        return [self.position(end).line for end in self.ends]

    def moment_after(self, line: int) -> int | None:
        """Blocks show one thing after the other, and may use a name for several."""
        at = bisect_left(self._last_lines, line)
        return self._last_lines[at] if at < len(self._last_lines) else None


def _blocks(document: str) -> Iterator[tuple[int, int, int, str]]:
    """Offsets of each block's fence, its first line and its closing fence, and what stands in place of the fence."""
    from pallas_lint.syntax import parses

    at = 0
    while (opening := _OPENING.search(document, at)) is not None:
        indent, fence = opening[1], opening[2]
        start = min(opening.end() + 1, len(document))
        closing = re.compile(
            rf"^ {{0,{len(indent) + 3}}}{re.escape(fence[0])}{{{len(fence)},}}[ \t]*\r?$", re.MULTILINE
        )
        found = closing.search(document, start)
        stop = found.start() if found is not None else len(document)
        lead = _LEAD if indent else ""
        if parses(f"{lead}\n{document[start:stop]}\n"):
            yield opening.start(), start, stop, lead
        at = found.end() if found is not None else len(document)
