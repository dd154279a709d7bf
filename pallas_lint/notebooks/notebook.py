"""Notebooks: their code cells as one module, and the way back to cells.

The cells stand below each other in one text, each behind a line of our own, so that all of the engine sees an ordinary
module; `Notebook.to_cell` turns a place in that text into one in a cell. What is not Python is masked.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache

from pallas_lint.finding import Edit, Finding, Fix, Position, Span
from pallas_lint.notebooks import json
from pallas_lint.notebooks.magics import blank, masked
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.records import define, evolve, frozen
from pallas_lint.text.source import MAX_CODE_BYTES, Replacement, Source, SourceError, SyntaxProblem

_SURROGATE = re.compile("[\ud800-\udfff]")  # JSON can hold half a character, Python's parsers cannot


@frozen
class Cell:
    """A code cell: its text as the user wrote it, and where it begins in the notebook's text."""

    number: int  # from 1, among all cells of the notebook
    text: str
    first: int  # line
    start: int  # offset
    uri: str = ""  # of an open notebook's

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@define(slots=False)
class Notebook(Source):
    """The code cells of a notebook in one text. `document` is the JSON they were read from, None for an open one."""

    cells: tuple[Cell, ...] = ()
    document: str | None = None

    @classmethod
    def from_bytes(cls, data: bytes, shown: str) -> Notebook:
        """Read a notebook's JSON. Raises SourceError with one clear sentence."""
        encoding = "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
        try:
            document = data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            raise SourceError(f"the notebook is not valid {encoding}: {error.reason}", line) from error
        return cls._from_document(document, shown, encoding)

    @classmethod
    def _from_document(cls, document: str, shown: str, encoding: str) -> Notebook:
        found = json.contents(document)
        if found.language != "python":
            note = f"{shown}: a notebook in {found.language}, not linted"
            return cls(shown, "", encoding, note=note, document=document)
        notebook = cls.of(shown, found.cells)
        if len(notebook.text) > MAX_CODE_BYTES:
            raise SourceError(f"the notebook has more than {format_bytes(MAX_CODE_BYTES)} of code")
        return evolve(notebook, encoding=encoding, document=document)

    @classmethod
    def of(cls, shown: str, texts: Iterable[tuple[int, str]], uris: Mapping[int, str] | None = None) -> Notebook:
        """The notebook with these code cells, by number; `uris` are the documents that an editor has them in."""
        cells: list[Cell] = []
        problems: list[SyntaxProblem] = []
        parts: list[str] = []
        line, offset = 1, 0
        for number, text in texts:
            code = _understood(text)
            uri = uris.get(number, "") if uris is not None else ""
            cell = Cell(number, text, line + 1, offset + len(code.lead) + 1, uri)
            problems += (_moved(each, line) for each in code.problems)
            cells.append(cell)
            parts += (code.lead, "\n", code.text, "\n")
            line += 1 + code.lines
            offset = cell.end + 1
        return cls(shown, "".join(parts), problems=tuple(problems), cells=tuple(cells))

    # -- cells and lines -------------------------------------------------------------------------------------------

    @cached_property
    def _firsts(self) -> list[int]:
        return [cell.first for cell in self.cells]

    def cell_at(self, line: int) -> Cell:
        """The cell that a line is in; a line between two belongs to the one above. There must be a cell."""
        return self.cells[max(bisect_right(self._firsts, line) - 1, 0)]

    def cell(self, number: int) -> Cell | None:
        return next((cell for cell in self.cells if cell.number == number), None)

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        return tuple((f"{self.path}:cell {cell.number}", cell.text) for cell in self.cells)

    def to_cell(self, span: Span) -> Span:
        """A place in the notebook's text as one in a cell."""
        cell = self.cell_at(span.start.line)
        last = self.position(cell.end)
        start, end = (max(min(place, last), Position(cell.first, 1)) for place in (span.start, span.end))
        first = cell.first - 1
        return Span(
            span.path,
            Position(start.line - first, start.column),
            Position(end.line - first, end.column),
            cell.number,
        )

    def line_as_written(self, number: int, cell: int | None = None) -> str:
        """A line with what is masked in it; `number` counts in the cell where one is named."""
        found = self.cell(cell) if cell is not None else self.cell_at(number) if self.cells else None
        if found is None:
            return ""
        return Source("", found.text).line(number if cell is not None else number - found.first + 1)

    def describe_line(self, line: int) -> str:
        cell = self.cell_at(line)
        return f"line {line - cell.first + 1} of cell {cell.number}"

    def moment_after(self, line: int) -> int | None:
        """The end of the cell: what it defines is mostly tried out there, before later cells bind names anew."""
        return self.cell_at(line).first + self.cell_at(line).text.count("\n") + 1

    # -- changes ---------------------------------------------------------------------------------------------------

    @property
    def data(self) -> bytes:
        assert self.document is not None, "a notebook that is not a file is written by its editor"
        return self.document.encode(self.encoding)

    def edited(self, replacements: Iterable[Replacement]) -> Notebook:
        by_cell: dict[int, list[Replacement]] = {}
        for each in replacements:
            cell = self.cell_at(self.position(each.start).line)
            own = Replacement(each.start - cell.start, each.end - cell.start, each.text)
            by_cell.setdefault(cell.number, []).append(own)
        texts = {
            cell.number: Source("", cell.text).edited(by_cell[cell.number]).text
            for cell in self.cells
            if cell.number in by_cell
        }
        if self.document is not None:
            document = json.rewritten(self.document, texts)
            return self._from_document(document, self.path, self.encoding)
        uris = {cell.number: cell.uri for cell in self.cells}
        return self.of(self.path, [(cell.number, texts.get(cell.number, cell.text)) for cell in self.cells], uris)

    def with_cell_positions(self, finding: Finding) -> Finding:
        """The finding with fixes that stay inside cells and change nothing that is masked; others are left out."""
        fixes = [self._settled_fix(fix) for fix in finding.fixes]
        return evolve(finding, fixes=tuple(fix for fix in fixes if fix is not None))

    def _settled_fix(self, fix: Fix) -> Fix | None:
        edits = [self.edit_in_cells(edit) if edit.span.path == self.path else edit for edit in fix.edits]
        kept = tuple(edit for edit in edits if edit is not None)
        return evolve(fix, edits=kept) if len(kept) == len(fix.edits) else None

    def edit_in_cells(self, edit: Edit) -> Edit | None:
        """An edit as one of a single cell; None where it is none, or would change what is masked."""
        start, end, text = self.offset(edit.span.start), self.offset(edit.span.end), edit.text
        cell = self.cell_at(edit.span.start.line)
        if start < cell.start:  # the line of our own before the first cell: the top of the code
            end = start = self._top
            cell = self.cell_at(self.position(start).line)
        if start > cell.end:  # the line of our own below a cell: what goes in there goes to the cell's end
            if end != start:
                return None
            start = end = cell.end
            text = f"\n{text.rstrip()}"
        elif end > cell.end:  # a whole line, with its end
            if end != cell.end + 1:
                return None
            end = cell.end
            if text.endswith("\n"):
                text = text[:-1]
            elif not text and start > cell.start:
                start -= 1
        if not self._writable(start, end, text):
            return None
        return Edit(Span(self.path, self.position(start), self.position(end)), text)

    @property
    def _top(self) -> int:
        """Where the first line of Python begins, behind cells in other languages and a `%%magic`."""
        lines = range(1, self.line_count + 1)
        first = next((n for n in lines if self.line_as_written(n).strip() and self.line(n).strip()), None)
        return self.line_starts[first - 1] if first is not None else self.cells[0].start

    @property
    def written(self) -> str:
        """`text` with what is masked in it."""
        parts: list[str] = []
        done = 0
        for cell in self.cells:
            parts += (self.text[done : cell.start], cell.text)
            done = cell.end
        return "".join((*parts, self.text[done:]))

    def _writable(self, start: int, end: int, text: str) -> bool:
        """Whether a change leaves what is masked alone."""
        first, last = self.position(start), self.position(end)
        # A whole line may go in before a command or behind one, but not into a cell of another language.
        whole = start == end and (first.column == 1 or text.startswith("\n"))
        return all(
            self.line(number) == self.line_as_written(number) or (whole and self.line(number).strip())
            for number in range(first.line, last.line + 1)
        )


@frozen
class _Code:
    """The Python of one cell: `text` is as long as the cell, `lead` stands on the line before it."""

    text: str
    lead: str
    lines: int
    problems: tuple[SyntaxProblem, ...] = ()


@lru_cache(maxsize=2048)
def _understood(text: str) -> _Code:
    """What can be judged of a cell.

    A cell that does not parse must not take those below with it, as an open string would: its broken statements are
    blanked, and are a problem each.
    """
    from pallas_lint.syntax import outline, parses

    code = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", masked(text))
    if code.endswith("\r"):
        code = code[:-1] + " "  # it would be one line end with what stands between the cells
    first = code.lstrip("\r\n")
    # IPython takes away the indentation of a whole cell.
    lead = "if 1:" if first[:1] in (" ", "\t") and code.strip() and _indented(code) else ""
    lines = Source("", code).line_count
    if parses(f"{lead}\n{code}\n"):
        return _Code(code, lead, lines)
    source = Source("", code)
    broken = {piece: piece.problem for piece in outline(source).walk() if piece.suspect and not piece.members}
    problems = tuple(problem for problem in broken.values() if problem is not None)
    for piece, problem in broken.items():
        if problem is not None:
            start = source.line_starts[piece.first - 1]
            code = code[:start] + blank(piece.text) + code[start + len(piece.text) :]
    if problems and not parses(f"\n{code}\n"):
        code = blank(code)
    return _Code(code, "", lines, problems)


def _moved(problem: SyntaxProblem, lines: int) -> SyntaxProblem:
    place = problem.position
    return evolve(problem, position=place._replace(line=place.line + lines))


def _indented(code: str) -> bool:
    """Whether the first line of code is indented."""
    line = next(line for line in code.splitlines() if line.strip())
    return line[0] in " \t"
