"""Findings as diagnostics."""

from __future__ import annotations

from bisect import bisect_right
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import range_of
from pygls import uris
from pygls.protocol import default_converter

from pallas_lint.finding import Related, Severity
from pallas_lint.identity import ById
from pallas_lint.records import define, field
from pallas_lint.text.digests import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cattrs import Converter
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Finding, Span
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.syntax import Piece
    from pallas_lint.text.source import Source

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFO: lsp.DiagnosticSeverity.Information,
}
_DEPRECATED = frozenset({"PAL702", "PAL705"})
_UNNECESSARY = frozenset({"PAL002", "PAL411"})  # but for an output that is never written
SOURCE = "pallas-lint"


class FindingDiagnostic(lsp.Diagnostic):
    """The diagnostic of a finding, of which most are sent again after an edit: it is written once."""

    written: dict[str, Any] | None = None  # as JSON has it

    @cached_property
    def identity(self) -> str:
        """A text that equal diagnostics share."""
        return repr(self)


def make_converter() -> Converter:
    """The converter of messages."""
    converter: Converter = default_converter()  # type: ignore[no-untyped-call]
    made = converter.get_unstructure_hook(lsp.Diagnostic)

    def write(diagnostic: lsp.Diagnostic) -> Any:
        if not isinstance(diagnostic, FindingDiagnostic):
            return made(diagnostic)
        if diagnostic.written is None:
            diagnostic.written = made(diagnostic)
        return diagnostic.written

    converter.register_unstructure_hook(lsp.Diagnostic, write)
    return converter


@define(eq=False)
class Diagnostics:
    """The diagnostics of one file. After an edit most findings are the same objects: so are their diagnostics."""

    _made: dict[ById, tuple[Finding, Related | None, lsp.Diagnostic]] = field(factory=dict, init=False)

    def of(
        self,
        findings: Iterable[Finding],
        source: Source,
        codec: PositionCodec,
        text_of: Callable[[str], Source | None],
        launches: Iterable[Launch],
    ) -> list[lsp.Diagnostic]:
        """The diagnostics of a file. Those in a kernel point at its launch, those in a launch at the kernel."""
        known, self._made = self._made, {}
        text_of = cache(text_of)
        launched = _LaunchedKernels(launch for launch in launches if launch.site.piece.source.path == source.path)
        for finding in findings:
            kernel = launched.kernel_of(finding.span)
            before = known.get(ById(finding))
            if before is None or before[1] != kernel:
                pointing = (*finding.related, kernel) if kernel is not None else finding.related
                before = finding, kernel, _diagnostic(finding, pointing, source, codec, text_of)
            self._made[ById(finding)] = before
        return [diagnostic for _, _, diagnostic in self._made.values()]


class _LaunchedKernels:
    """The kernels of the launches in a file, by what is in the launch."""

    def __init__(self, launches: Iterable[Launch]) -> None:
        self._in: dict[Piece, list[Launch]] = {}
        for launch in launches:
            self._in.setdefault(launch.site.piece, []).append(launch)
        self._pieces = sorted(self._in, key=lambda piece: piece.first)
        self._firsts = [piece.first for piece in self._pieces]

    def kernel_of(self, span: Span) -> Related | None:
        """The kernel of the launch that a span is part of."""
        at = bisect_right(self._firsts, span.start.line) - 1
        piece = self._pieces[at] if at >= 0 else None
        if piece is None or span.end.line > piece.last:
            return None
        for launch in self._in[piece]:
            if launch.bodies and launch.called_at.span.contains(span):
                body = launch.bodies[0]
                return Related(body.piece.span(getattr(body.node, "name", body.node)), f"the kernel `{body.name}`")
        return None


def identify(found: Iterable[lsp.Diagnostic]) -> str:
    """A digest that equal diagnostics share, also those that come from no finding."""
    spelled = "".join(each.identity if isinstance(each, FindingDiagnostic) else repr(each) for each in found)
    return digest(spelled.encode("utf-8", "surrogatepass"))


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
    if finding.code in _UNNECESSARY and finding.severity is not Severity.ERROR:
        tags.append(lsp.DiagnosticTag.Unnecessary)
    related = [_related(each, codec, text_of) for each in pointing]
    return FindingDiagnostic(
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
