"""GitLab's code quality report: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

from pallas_lint.finding import Severity
from pallas_lint.report.concise import circumstances
from pallas_lint.triage.fingerprints import fingerprints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.report import Report

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "major", Severity.INFO: "info"}


def render(report: Report) -> Iterator[str]:
    """One JSON array of issues."""
    known = fingerprints(report.findings, report.source_line, lambda path: path)
    yield dumps([_issue(finding, fingerprint) for finding, fingerprint in known], indent=2) + "\n"


def _issue(finding: Finding, fingerprint: str) -> dict[str, Any]:
    span = finding.span
    context = circumstances(finding)
    last = span.end.line - (span.end.column == 1 and span.end.line > span.start.line)
    return {
        "description": f"{finding.code}: {finding.message}" + (f" [{', '.join(context)}]" if context else ""),
        "check_name": finding.name,
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[finding.severity],
        "location": {"path": span.path, "lines": {"begin": span.start.line, "end": last}},
    }
