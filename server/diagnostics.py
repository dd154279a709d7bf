"""Findings as diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.positions import range_of
from pygls import uris

from pallas_lint.finding import Severity
from pallas_lint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.server.documents import Judged
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Finding, Related

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}
_DEPRECATED = frozenset({"PAL702", "PAL705"})
_UNNECESSARY = frozenset({"PAL002"})
SOURCE = "pallas-lint"


def diagnostics_of(
    judged: Judged, codec: PositionCodec, text_of: Callable[[str], Source | None]
) -> list[lsp.Diagnostic]:
    """The diagnostics of one document; findings in other files that its kernels reach are shown there."""
    found = [
        _diagnostic(finding, judged.source, codec, text_of)
        for finding in judged.findings
        if finding.span.path == judged.source.path
    ]
    if judged.problem is not None:
        start = lsp.Position(line=0, character=0)
        found.append(
            lsp.Diagnostic(
                range=lsp.Range(start=start, end=start),
                message=judged.problem,
                severity=lsp.DiagnosticSeverity.Error,
                source=SOURCE,
            )
        )
    return found


def _diagnostic(
    finding: Finding, source: Source, codec: PositionCodec, text_of: Callable[[str], Source | None]
) -> lsp.Diagnostic:
    tags = []
    if finding.code in _DEPRECATED:
        tags.append(lsp.DiagnosticTag.Deprecated)
    if finding.code in _UNNECESSARY:
        tags.append(lsp.DiagnosticTag.Unnecessary)
    related = [_related(each, codec, text_of) for each in finding.related]
    return lsp.Diagnostic(
        range=range_of(source, finding.span, codec),
        message=f"{finding.message}\n{finding.help}" if finding.help else finding.message,
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=lsp.CodeDescription(href=finding.url),
        source=SOURCE,
        tags=tags or None,
        related_information=[each for each in related if each is not None] or None,
        data={"code": finding.code, "name": finding.name, "fixable": bool(finding.fixes)},
    )


def _related(
    related: Related, codec: PositionCodec, text_of: Callable[[str], Source | None]
) -> lsp.DiagnosticRelatedInformation | None:
    source = text_of(related.span.path)
    uri = uris.from_fs_path(related.span.path)
    if source is None or uri is None:
        return None
    place = lsp.Location(uri=uri, range=range_of(source, related.span, codec))
    return lsp.DiagnosticRelatedInformation(location=place, message=related.message)


def read(path: str) -> Source | None:
    """The text of a file that is not open; None where it cannot be read."""
    from pathlib import Path

    try:
        return Source.read(Path(path), path)
    except SourceError:
        return None
