"""SARIF 2.1.0, which code scanning services and editors read."""

from __future__ import annotations

from json import dumps
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pallas_lint import __version__
from pallas_lint.finding import DOCS_URL, Severity
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.triage.fingerprints import fingerprints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding, Fix, LintError, Related, Span
    from pallas_lint.report import Report
    from pallas_lint.ruleset.registry import RuleEntry

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_ROOT = "%SRCROOT%"


def render(report: Report) -> Iterator[str]:
    """One log with one run."""
    yield dumps(document(report), indent=2) + "\n"


def document(report: Report) -> dict[str, Any]:
    """The log as plain data. Its rules are those that found something, in the order of their codes."""
    codes = sorted({finding.code for finding in report.findings})
    entries = all_rules()
    index = {code: number for number, code in enumerate(codes)}
    known = fingerprints(report.findings, report.source_line, lambda path: path)
    driver = {
        "name": "pallas-lint",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": DOCS_URL.removesuffix("rules/"),
        "rules": [_rule(entries[code]) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": f"{Path.cwd().as_uri().rstrip('/')}/"}},
        "invocations": [
            {
                "executionSuccessful": not report.errors,
                "toolExecutionNotifications": [_notification(error) for error in report.errors],
            }
        ],
        "results": [
            _result(finding, fingerprint, index[finding.code], report) for finding, fingerprint in known
        ],
    }  # fmt: skip
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(entry: RuleEntry) -> dict[str, Any]:
    page = entry.docs()
    return {
        "id": entry.code,
        "name": entry.name,
        "shortDescription": {"text": entry.summary},
        "fullDescription": {"text": entry.summary},
        "help": {"text": page, "markdown": page},
        **({"helpUri": entry.url} if entry.url else {}),
        "defaultConfiguration": {"level": _LEVELS[entry.severity]},
        "properties": {"tags": ["jax", "pallas"], "precision": "very-high" if entry.severity.rank else "medium"},
    }


def _result(finding: Finding, fingerprint: str, rule: int, report: Report) -> dict[str, Any]:
    conditions = {
        key: getattr(finding, key)
        for key in ("kernel", "backend", "device", "core", "jax", "dtype", "origin", "cell")
        if getattr(finding, key) is not None
    }
    location = _location(finding.span, finding.cell)
    text = report.source_line(finding.span.path, finding.span.start.line)
    if text is not None:
        location["physicalLocation"]["region"]["snippet"] = {"text": text}
    if finding.kernel:
        location["logicalLocations"] = [{"name": finding.kernel, "kind": "function"}]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "locations": [location],
        "partialFingerprints": {"pallasLint/v1": fingerprint},
        "properties": conditions,
    }
    if finding.related:
        result["relatedLocations"] = [_related(number, each) for number, each in enumerate(finding.related)]
    # Columns of a notebook's cell are no places in the file that a fix could be written to.
    if finding.fixes and finding.cell is None:
        result["fixes"] = [_fix(fix) for fix in finding.fixes]
    return result


def _message(finding: Finding) -> str:
    where = f"cell {finding.cell}, line {finding.span.start.line}: " if finding.cell is not None else ""
    return f"{where}{finding.message}" + (f"\n{finding.help}" if finding.help else "")


def _location(span: Span, cell: int | None) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": _artifact(span.path)}
    # The lines of a finding in a notebook count within the cell, which SARIF cannot express: only the property does.
    place["region"] = {"startLine": 1} if cell is not None else _region(span)
    return {"physicalLocation": place}


def _related(number: int, related: Related) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(related.span.path), "region": _region(related.span)}
    return {"id": number, "physicalLocation": place, "message": {"text": related.message}}


def _fix(fix: Fix) -> dict[str, Any]:
    changes: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        replacement = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
        changes.setdefault(edit.span.path, []).append(replacement)
    safety = "" if fix.applicability == "safe" else " (unsafe)"
    return {
        "description": {"text": f"{fix.title}{safety}"},
        "artifactChanges": [
            {"artifactLocation": _artifact(path), "replacements": replacements}
            for path, replacements in changes.items()
        ],
    }


def _notification(error: LintError) -> dict[str, Any]:
    notification: dict[str, Any] = {"level": "error", "message": {"text": error.message}}
    if error.path:
        place: dict[str, Any] = {"artifactLocation": _artifact(error.path)}
        if error.line:
            place["region"] = {"startLine": error.line}
        notification["locations"] = [{"physicalLocation": place}]
    return notification


def _artifact(path: str) -> dict[str, str]:
    pure = PurePath(path)
    if pure.is_absolute():
        return {"uri": pure.as_uri()}
    return {"uri": quote(pure.as_posix().encode("utf-8", "surrogateescape")), "uriBaseId": _ROOT}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.start.line,
        "startColumn": span.start.column,
        "endLine": span.end.line,
        "endColumn": span.end.column,
    }
