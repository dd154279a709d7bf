"""Lines of source files, for reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.source import Source


class Lines:
    """Source lines for the report, read when asked for: cached findings come without their text."""

    def __init__(self, cwd: Path, texts: dict[str, Source] | None = None) -> None:
        self.cwd = cwd
        self.texts = dict(texts or {})
        self.missing: set[str] = set()

    def line(self, path: str, number: int) -> str | None:
        if path in self.missing:
            return None
        if path not in self.texts:
            from pallas_lint.source import Source, SourceError

            try:
                self.texts[path] = Source.read(self.cwd / path, path)
            except SourceError:
                self.missing.add(path)
                return None
        return self.texts[path].line(number)
