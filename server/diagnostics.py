"""Findings as diagnostics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.positions import range_of
from pygls import uris

from pallas_lint.finding import Related, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pallas_lint.server.documents import Judged
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Finding, Span
    from pallas_lint.source import Source

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}
_DEPRECATED = frozenset({"PAL702", "PAL705"})
_UNNECESSARY = frozenset({"PAL002"})
SOURCE = "pallas-lint"


def diagnostics_of(
    findings: Iterable[Finding],
    source: Source,
    codec: PositionCodec,
    text_of: Callable[[str], Source | None],
    launched: Mapping[Span, Related],
) -> list[lsp.Diagnostic]:
    """The diagnostics of the findings in one file. Those in a kernel point at its launch.

    Those in a launch point at the kernel, where `launched` has it by the launch's place.
    """
    found = []
    for finding in findings:
        kernel = next((kernel for place, kernel in launched.items() if _within(finding.span, place)), None)
        pointing = (*finding.related, kernel) if kernel is not None else finding.related
        found.append(_diagnostic(finding, pointing, source, codec, text_of))
    return found


def launched_kernels(judged: Judged) -> dict[Span, Related]:
    """The kernel behind each launch in a document, by the place of the launch."""
    found: dict[Span, Related] = {}
    for launch in judged.judgement.analysis.launches if judged.judgement and judged.judgement.analysis else ():
        for body in launch.bodies[:1]:
            where = body.piece.span(getattr(body.node, "name", body.node))
            found[launch.called_at.span] = Related(where, f"the kernel `{body.name}`")
    return found


def _within(span: Span, around: Span) -> bool:
    return span.path == around.path and around.start <= span.start and span.end <= around.end


def problem_at(
    message: str,
    line: int = 1,
    source: Source | None = None,
    severity: lsp.DiagnosticSeverity = lsp.DiagnosticSeverity.Error,
) -> lsp.Diagnostic:
    """Something that keeps a file from being judged; `line` counts from 1, and all of it is marked."""
    length = len(source.line(line)) if source is not None else 0
    start = lsp.Position(line=line - 1, character=0)
    return lsp.Diagnostic(
        range=lsp.Range(start=start, end=lsp.Position(line=line - 1, character=length)),
        message=message,
        severity=severity,
        source=SOURCE,
    )


def _diagnostic(
    finding: Finding,
    pointing: Iterable[Related],
    source: Source,
    codec: PositionCodec,
    text_of: Callable[[str], Source | None],
) -> lsp.Diagnostic:
    tags = []
    if finding.code in _DEPRECATED:
        tags.append(lsp.DiagnosticTag.Deprecated)
    if finding.code in _UNNECESSARY:
        tags.append(lsp.DiagnosticTag.Unnecessary)
    related = [_related(each, codec, text_of) for each in pointing]
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
