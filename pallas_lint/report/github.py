"""GitHub's workflow commands: annotations on the lines of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Severity
from pallas_lint.report.concise import circumstances
from pallas_lint.report.style import visible, visible_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pallas_lint.finding import Finding
    from pallas_lint.report import Report

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report) -> Iterator[str]:
    """`::error title=…,file=…,line=…::message` for each finding, and for each error of the run."""
    for finding in report.findings:
        yield _command(_COMMANDS[finding.severity], _properties(finding), _message(finding))
    for error in report.errors:
        place = {"title": "pallas-lint", "file": visible_file(error.path) if error.path else None, "line": error.line}
        yield _command("error", place, visible(error.message))


def _properties(finding: Finding) -> Mapping[str, object]:
    span = finding.span
    # Columns are for one line only: GitHub drops an annotation that has them for several.
    one_line = span.start.line == span.end.line and finding.cell is None
    return {
        "title": f"pallas-lint {finding.code} {finding.name}",
        "file": visible_file(span.path),
        # Lines of a notebook count within a cell, those of an annotation within the file.
        "line": span.start.line if finding.cell is None else None,
        "endLine": span.end.line if finding.cell is None else None,
        "col": span.start.column if one_line else None,
        "endColumn": span.end.column if one_line else None,
    }


def _message(finding: Finding) -> str:
    where = f"cell {finding.cell}, line {finding.span.start.line}: " if finding.cell is not None else ""
    context = circumstances(finding)
    tail = f" [{', '.join(context)}]" if context else ""
    return f"{where}{visible(finding.message)}{tail}" + (f"\n{visible(finding.help)}" if finding.help else "")


def _command(name: str, properties: Mapping[str, object], message: str) -> str:
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items() if value is not None)
    return f"::{name} {given}::{_data(message)}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
