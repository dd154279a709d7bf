"""The sources of files, whether modules, notebooks or Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.notebooks import MARKDOWN
from pallas_lint.text import files
from pallas_lint.text.source import Source, SourceError

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX = ".ipynb"


def read(file: Path, shown: str) -> Source:
    """The text of a Python file, notebook or Markdown file. Raises SourceError with one clear sentence."""
    if not shown.endswith((SUFFIX, *MARKDOWN)):
        return Source.read(file, shown)
    try:
        data = files.read(file)
    except OSError as error:
        raise SourceError(f"cannot read the file: {error.strerror or error}") from error
    return from_bytes(data, shown)


def from_bytes(data: bytes, shown: str) -> Source:
    """The source from the bytes of a file. Raises SourceError."""
    if shown.endswith(MARKDOWN):
        from pallas_lint.notebooks.markdown import Markdown

        return Markdown.from_bytes(data, shown)
    if not shown.endswith(SUFFIX):
        return Source.from_bytes(data, shown)
    from pallas_lint.notebooks.notebook import Notebook  # most runs meet none

    return Notebook.from_bytes(data, shown)
