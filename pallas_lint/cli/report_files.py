"""Reports in files that options name: `--report F=FILE`, `--output-file FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint import report as reports
from pallas_lint.config.flags import UsageError
from pallas_lint.records import evolve
from pallas_lint.report.style import Style
from pallas_lint.text import files

if TYPE_CHECKING:
    from pathlib import Path


def write(cwd: Path, report: reports.Report, output_format: str, file: str, option: str) -> None:
    """Write a report as for no terminal. Raises UsageError, which names `option`, where that is not possible."""
    write_text(cwd, "".join(reports.render(output_format, evolve(report, style=Style(), width=None))), file, option)


def write_text(cwd: Path, text: str, file: str, option: str) -> None:
    """Write a report that is rendered. Raises UsageError as `write`."""
    try:
        files.write(cwd / file, text.encode("utf-8", "backslashreplace"), None)
    except OSError as error:
        raise UsageError(f"{option}: {file}: {error.strerror or error}") from error
