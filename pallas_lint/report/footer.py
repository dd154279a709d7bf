"""The closing lines of the text formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Severity
from pallas_lint.launch_summary import Coverage
from pallas_lint.report.style import visible, visible_file
from pallas_lint.report.wrapping import wrapped
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.finding import Finding, Span
    from pallas_lint.launch_summary import LaunchSummary
    from pallas_lint.report import Assumed, Report

_MAX_PLACES = 3  # that are named: files without a version, launches that were not followed


def render(report: Report) -> Iterator[str]:
    """What was found in how much code, what can be fixed, and what was assumed."""
    for line in () if report.quiet else _lines(report):
        yield from (f"{part}\n" for part in wrapped(line, report.width))


def _lines(report: Report) -> Iterator[str]:
    style = report.style
    read = f"{count_of(report.kernels, 'kernel')}, {count_of(report.files, 'file')}"
    fixed = f" ({count_of(report.fixed, 'finding')} fixed)" if report.fixed else ""
    if report.findings:
        by_severity = ", ".join(
            style.severity(severity, count_of(number, severity.value))
            for severity in Severity
            if (number := sum(finding.severity is severity for finding in report.findings))
        )
        found = style.bold(f"Found {count_of(len(report.findings), 'finding')}")
        yield f"{found} ({by_severity}) in {read}{fixable(report.findings)}.{fixed}"
    elif report.kernels or not report.errors:  # of what could not be read or run nothing is known
        # What was checked comes at the end.
        where = count_of(report.files, "file") if report.kernels or report.seen else read
        yield f"{style.good('No findings')} in {where}.{fixed}"
    if report.assumed is not None:
        yield f"{style.dim('note:')} {_assumption(report.assumed)}"
    for note in report.notes:
        yield f"{style.dim('note:')} {visible(note)}"
    if report.seen or report.unjudged or (report.kernels and not report.findings):
        yield f"{_judged(report)}{_unjudged(report.unjudged)}"


def _assumption(assumed: Assumed) -> str:
    """The files without a known jax version, and the version taken: "… for 2 of 12 files, a.py, b.py (no …): …"."""
    where = ""
    if assumed.files:
        named = ", ".join(map(visible_file, assumed.files[:_MAX_PLACES]))
        more = ", …" if len(assumed.files) > _MAX_PLACES else ""
        where = f" for {len(assumed.files)} of {len(assumed.files) + assumed.others} files, {named}{more}"
    return (
        f"jax version unknown{where} (no environment, lock file or requirement): judged as "
        f"{assumed.version}, the newest known; --jax-version sets it"
    )


def _judged(report: Report) -> str:
    """ "31 kernels judged for tpu:v5e, jax 0.10.2 (uv.lock); 19 with known shapes, 1 not followed: src/a.py:40".

    With findings, the number of kernels is already in the line above.
    """
    backends = sorted({each.backend for each in report.seen if each.judged and each.backend is not None})
    judged = ", ".join((*backends, *report.jax))
    subject = "" if report.findings else f"{count_of(report.kernels, 'kernel')} "
    kernels = f"{subject}judged{f' for {judged}' if judged else ''}"
    coverage = Coverage.of(report.seen)
    if not coverage.launches:
        return kernels
    launches = "" if coverage.launches == report.kernels else f"of {count_of(coverage.launches, 'launch')} "
    parts = [f"{launches}{coverage.shapes or 'none'} with known shapes"]
    lost = [each for each in report.seen if not each.followed]
    if coverage.backend < coverage.launches:
        parts.append(f"{coverage.launches - coverage.backend} without a known backend")
    if lost:
        places = [f"{file_of(each)}:{each.line}" for each in lost[:_MAX_PLACES]]
        parts.append(f"{len(lost)} not followed: {', '.join(places)}{', …' if len(lost) > _MAX_PLACES else ''}")
    return f"{kernels}; {', '.join(parts)}"


def _unjudged(stages: Sequence[str]) -> str:
    """ "; 2 stages not judged: compile for tpu:v5e of `matmul`: needs libtpu (pip install libtpu), …"."""
    if not stages:
        return ""
    listed = ", ".join(map(visible, stages[:_MAX_PLACES]))
    return f"; {count_of(len(stages), 'stage')} not judged: {listed}{', …' if len(stages) > _MAX_PLACES else ''}"


def file_of(place: LaunchSummary | Span) -> str:
    """The file of a launch or a finding, with the cell in a notebook: `n.ipynb:cell 3`."""
    return visible_file(place.path) + (f":cell {place.cell}" if place.cell is not None else "")


def fixable(findings: Sequence[Finding]) -> str:
    """ "; 2 fixable with --fix (1 more with --unsafe-fixes)", or nothing."""
    kinds = [{fix.applicability for fix in finding.fixes} for finding in findings if finding.fixes]
    safe = sum("safe" in kind for kind in kinds)
    unsafe = len(kinds) - safe
    if safe and unsafe:
        return f"; {safe} fixable with --fix ({unsafe} more with --unsafe-fixes)"
    if safe:
        return f"; {safe} fixable with --fix"
    return f"; {unsafe} fixable with --fix --unsafe-fixes" if unsafe else ""
