"""Lines of source files, for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.finding import Finding, Span
    from pallas_lint.text.source import Source


class SourceLine(Protocol):
    """The text of a line of a file, or of a notebook's cell; None where it is not known."""

    def __call__(self, path: str, number: int, cell: int | None = None, /) -> str | None: ...


class Lines:
    """Source lines for the report, read when needed: cached findings come without their text."""

    def __init__(self, cwd: Path, texts: dict[str, Source] | None = None) -> None:
        self.cwd = cwd
        self.texts = dict(texts or {})
        self.missing: set[str] = set()

    def line(self, path: str, number: int, cell: int | None = None, /) -> str | None:
        source = self.source(path)
        return None if source is None else source.line_as_written(number, cell)

    def source(self, path: str) -> Source | None:
        """A file's text; None where it cannot be read."""
        if path in self.missing:
            return None
        if path not in self.texts:
            from pallas_lint.notebooks import reading
            from pallas_lint.text.source import SourceError

            try:
                self.texts[path] = reading.read(self.cwd / path, path)
            except SourceError:
                self.missing.add(path)
                return None
        return self.texts[path]

    def with_cells(self, finding: Finding) -> Finding:
        """The finding with its places as the user finds them: in a notebook, lines of a cell."""
        if not any(path.endswith(".ipynb") for path in _paths(finding)):
            return finding
        return finding.moved(self._placed)

    def _placed(self, span: Span) -> Span:
        source = self.source(span.path)
        return span if source is None else source.to_cell(span)


def _paths(finding: Finding) -> set[str]:
    return {finding.span.path, *(each.span.path for each in finding.related)}
