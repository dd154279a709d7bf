"""The closing lines of the text formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Severity
from pallas_lint.report.style import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.finding import Finding
    from pallas_lint.report import Report


def count(number: int, noun: str) -> str:
    """ "1 finding", "2 findings"; "info" has no plural."""
    return f"{number} {noun}" if number == 1 or noun == "info" else f"{number} {noun}s"


def render(report: Report) -> Iterator[str]:
    """What was found in how much code, what can be fixed, and what was assumed."""
    if report.quiet:
        return
    style = report.style
    read = f"{count(report.kernels, 'kernel')}, {count(report.files, 'file')}"
    fixed = f" ({count(report.fixed, 'finding')} fixed)" if report.fixed else ""
    if report.findings:
        by_severity = ", ".join(
            style.severity(severity, count(number, severity.value))
            for severity in Severity
            if (number := sum(finding.severity is severity for finding in report.findings))
        )
        found = style.bold(f"Found {count(len(report.findings), 'finding')}")
        yield f"{found} ({by_severity}) in {read}{fixable(report.findings)}.{fixed}\n"
    elif report.files or not report.errors:
        yield f"{style.good('No findings')} in {read}.{fixed}\n"
    if report.assumed is not None:
        yield (
            f"{style.dim('note:')} jax version unknown (no environment, lock file or requirement): judged as "
            f"{report.assumed.text}, the newest known; --jax-version sets it\n"
        )
    for note in report.notes:
        yield f"{style.dim('note:')} {visible(note)}\n"


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
