"""The output of `--show-kernels`: a line for each place that launches a kernel."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

from pallas_lint import __version__
from pallas_lint.finding import Severity
from pallas_lint.launch_summary import Coverage, LaunchSummary
from pallas_lint.records import fields
from pallas_lint.report.footer import file_of
from pallas_lint.report.json import VERSION, coverage_document, error_document
from pallas_lint.report.style import visible
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.report import Report
    from pallas_lint.report.style import Style

_MAX_WIDTH = 70  # characters of operands, and of results
FORMATS = ("full", "concise", "json")


def render(output_format: str, report: Report) -> Iterator[str]:
    """Place, kernel, backend and why, grid, types and where they come from; or what stopped the analysis."""
    if output_format == "json":
        yield dumps(document(report), indent=2) + "\n"
        return
    for launch in report.seen:
        yield f"{_line(launch, report.style)}\n"
    if report.quiet:
        return
    coverage = Coverage.of(report.seen)
    counts = (
        f"{coverage.followed} followed",
        f"{coverage.backend} with a backend",
        f"{coverage.shapes} with known shapes",
    )
    numbers = f": {', '.join(counts)}" if coverage.launches else ""
    yield f"{report.style.bold(count_of(coverage.launches, 'launch'))} in {count_of(report.files, 'file')}{numbers}.\n"
    for note in report.notes:
        yield f"{report.style.dim('note:')} {visible(note)}\n"


def _line(launch: LaunchSummary, style: Style) -> str:
    where = f"{style.path(file_of(launch))}:{launch.line}:{launch.column}:"
    facts = [f"{launch.backend or 'backend not known'} ({launch.why})", launch.grid]
    known = _short(launch.types) if launch.types else "operands not known"
    details = visible("; ".join((*facts, known))) + style.dim(visible(_origin(launch)))
    if launch.kernel is not None:
        cut = f"; {style.severity(Severity.WARNING, 'cut short')}: {visible(launch.stopped)}" if launch.stopped else ""
        return f"{where} {style.bold(visible(launch.kernel))}: {details}{cut}"
    stopped = f"{style.severity(Severity.WARNING, 'not followed')}: {visible(launch.stopped or '')}"
    return f"{where} {stopped}{f'; {details}' if launch.met else ''}"


def _origin(launch: LaunchSummary) -> str:
    """ ", as in tests/test_rows.py:12, and 2 other calls"."""
    if launch.types is None:
        return ""
    others = f", and {count_of(launch.more, 'other call')}" if launch.more else ""
    if launch.source is None:
        return f", as in the text{others}"
    own, place = launch.source[: len(launch.path)] == launch.path, launch.source[len(launch.path) :]
    where = launch.source if not own else place[2:] if place.startswith("::") else f"line {place[1:]}"
    return f", as in {where}{others}"


def _short(types: str) -> str:
    """Types in a length that one reads: the first operands and the first results."""
    if len(types) <= 2 * _MAX_WIDTH:
        return types
    return " → ".join(
        part if len(part) <= _MAX_WIDTH else f"{part[: part.rfind(', ', 0, _MAX_WIDTH)]}, …"
        for part in types.split(" → ")
    )


def document(report: Report) -> dict[str, Any]:
    """The report on launches as plain data."""
    names = [each.name for each in fields(LaunchSummary)]
    coverage = coverage_document(report)
    return {
        "version": VERSION,
        "tool": __version__,
        "files": report.files,
        "sight": coverage,  # the earlier name of the next key
        "coverage": coverage,
        "kernels": [{name: getattr(launch, name) for name in names} for launch in report.seen],
        "errors": [error_document(error) for error in report.errors],
    }
