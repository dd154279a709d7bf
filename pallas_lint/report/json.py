"""The JSON format: its keys are a contract that others script against."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any

from pallas_lint import __version__
from pallas_lint.launch_summary import Coverage
from pallas_lint.records import fields
from pallas_lint.report.statistics import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding, Fix, LintError, Position, Related, Span
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.report import Report

VERSION = 1


def render(report: Report) -> Iterator[str]:
    """One JSON document."""
    # ASCII only: whatever the encoding of the stream, and whatever bytes a file name is made of, it can be
    # written.
    yield dumps(document(report), indent=2) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    counts = {"statistics": rows(report)} if report.statistics else {}
    coverage = coverage_document(report)
    return {
        "version": VERSION,
        "tool": __version__,
        "files": report.files,
        "kernels": report.kernels,
        "sight": coverage,  # the earlier name of the next key
        "coverage": coverage,
        "findings": [finding_document(finding) for finding in report.findings],
        "errors": [error_document(error) for error in report.errors],
        "launches": list(report.launches),
        **({"functions": list(report.functions)} if report.functions else {}),
        **counts,
    }


def coverage_document(report: Report) -> dict[str, int]:
    """How many launches were found, and how far they were seen."""
    coverage = Coverage.of(report.seen)
    return {each.name: getattr(coverage, each.name) for each in fields(Coverage)}


def finding_document(finding: Finding) -> dict[str, Any]:
    """One finding, every field present."""
    known_call = None if finding.known_call is None else _known_call(finding.known_call)
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "message": finding.message,
        "help": finding.help,
        "url": finding.url,
        **_span(finding.span),
        "kernel": finding.kernel,
        "backend": finding.backend,
        "device": finding.device,
        "core": finding.core,
        "jax": finding.jax,
        "dtype": finding.dtype,
        "origin": finding.origin,
        "related": [_related(related) for related in finding.related],
        "fixes": [_fix(fix) for fix in finding.fixes],
        "witness": known_call,  # the earlier name of the next key
        "known_call": known_call,
    }


def _known_call(known_call: KnownCall) -> dict[str, str]:
    document = {"function": known_call.name, "arguments": known_call.spelled, "source": known_call.source}
    return {**document, "kind": "convention"} if known_call.kind == "convention" else document


def error_document(error: LintError) -> dict[str, Any]:
    """One error of the run."""
    return {"path": error.path, "line": error.line, "message": error.message}


def _position(position: Position) -> dict[str, int]:
    return {"line": position.line, "column": position.column}


def _span(span: Span) -> dict[str, Any]:
    return {"path": span.path, "start": _position(span.start), "end": _position(span.end), "cell": span.cell}


def _related(related: Related) -> dict[str, Any]:
    return {**_span(related.span), "message": related.message}


def _fix(fix: Fix) -> dict[str, Any]:
    edits = [{**_span(edit.span), "text": edit.text} for edit in fix.edits]
    return {"title": fix.title, "applicability": fix.applicability, "edits": edits}
