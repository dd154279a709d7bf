"""Quick-fixes: the findings' own fixes, suppressions, and `source.fixAll`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.positions import from_lsp, range_of, touches
from pygls import uris

from pallas_lint import fixer
from pallas_lint.finding import Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pallas_lint.server.documents import Judged
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Finding, Fix
    from pallas_lint.source import Source

FIX_ALL = "source.fixAll.pallasLint"
_MARKER = re.compile(r"#\s*pallas-lint:\s*disable=([\w,\- ]+)")


def code_actions(
    judged: Judged,
    asked: lsp.Range,
    only: Sequence[str] | None,
    codec: PositionCodec,
    text_of: Callable[[str], Source | None],
    diagnostics: Sequence[lsp.Diagnostic],
) -> list[lsp.CodeAction]:
    """What can be done in a range of a document; `only` are the kinds that the client wants."""
    actions: list[lsp.CodeAction] = []
    if _wanted(only, "quickfix"):
        first, last = (from_lsp(judged.source, place, codec) for place in (asked.start, asked.end))
        here = [
            finding
            for finding in judged.findings
            if finding.span.path == judged.source.path and touches(finding.span, first, last)
        ]
        for finding in here:
            shown = [each for each in diagnostics if each.code == finding.code]
            actions += _fixes(finding, shown, codec, text_of)
        for finding in here:
            shown = [each for each in diagnostics if each.code == finding.code]
            actions += _suppressions(finding, judged, shown, codec)
    # Asked for by name (on save, or from the menu), or in a list of all source actions.
    if only is not None and _wanted(only, FIX_ALL):
        edit = fix_all(judged, codec)
        if edit is not None:
            actions.append(lsp.CodeAction(title="Fix all safe Pallas findings", kind=FIX_ALL, edit=edit))
    return actions


def _wanted(only: Sequence[str] | None, kind: str) -> bool:
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in only)


def _fixes(
    finding: Finding,
    diagnostics: list[lsp.Diagnostic],
    codec: PositionCodec,
    text_of: Callable[[str], Source | None],
) -> Iterator[lsp.CodeAction]:
    for fix in finding.fixes:
        edit = _workspace_edit(fix, codec, text_of)
        if edit is None:
            continue
        safe = fix.applicability == "safe"
        title = f"{fix.title[0].upper()}{fix.title[1:]}" + ("" if safe else " (look at the result)")
        yield lsp.CodeAction(
            title=f"{finding.code}: {title}",
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=diagnostics or None,
            is_preferred=True if safe else None,
            edit=edit,
        )


def _workspace_edit(
    fix: Fix, codec: PositionCodec, text_of: Callable[[str], Source | None]
) -> lsp.WorkspaceEdit | None:
    changes: dict[str, list[lsp.TextEdit]] = {}
    for edit in fix.edits:
        source, uri = text_of(edit.span.path), uris.from_fs_path(edit.span.path)
        if source is None or uri is None:
            return None
        offset = source.offset(edit.span.start)
        text = fixer.with_newlines(edit.text, source.text, offset)
        changes.setdefault(uri, []).append(lsp.TextEdit(range=range_of(source, edit.span, codec), new_text=text))
    return lsp.WorkspaceEdit(changes=dict(changes)) if changes else None


def _suppressions(
    finding: Finding, judged: Judged, diagnostics: list[lsp.Diagnostic], codec: PositionCodec
) -> Iterator[lsp.CodeAction]:
    """Silence a finding on its line, or in the file."""
    if finding.code in ("PAL001", "PAL002"):
        return
    source = judged.source
    line = finding.span.start.line
    yield lsp.CodeAction(
        title=f"{finding.code}: Disable {finding.name} on this line",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=diagnostics or None,
        edit=_one_edit(judged, _line_edit(source, line, finding.code, codec)),
    )
    first = next((n for n in range(1, source.line_count + 1) if not source.line(n).startswith("#!")), 1)
    place = lsp.Position(line=first - 1, character=0)
    text = fixer.with_newlines(f"# pallas-lint: disable-file={finding.code}\n", source.text, 0)
    yield lsp.CodeAction(
        title=f"{finding.code}: Disable {finding.name} in this file",
        kind=lsp.CodeActionKind.QuickFix,
        diagnostics=diagnostics or None,
        edit=_one_edit(judged, lsp.TextEdit(range=lsp.Range(start=place, end=place), new_text=text)),
    )


def _line_edit(source: Source, line: int, code: str, codec: PositionCodec) -> lsp.TextEdit:
    text = source.line(line)
    match = _MARKER.search(text)
    column = match.end() if match else len(text.rstrip())
    place = lsp.Position(line=line - 1, character=codec.client_num_units(text[:column]))
    added = f",{code}" if match else f"  # pallas-lint: disable={code}"
    return lsp.TextEdit(range=lsp.Range(start=place, end=place), new_text=added)


def _one_edit(judged: Judged, edit: lsp.TextEdit) -> lsp.WorkspaceEdit:
    return lsp.WorkspaceEdit(changes={judged.uri: [edit]})


def fix_all(judged: Judged, codec: PositionCodec) -> lsp.WorkspaceEdit | None:
    """All safe fixes of a document that go together, as one edit; None where there is nothing to do."""
    candidates = [
        (finding, chosen)
        for finding in judged.findings
        if (chosen := fixer.choose(finding, unsafe=False)) is not None
        and all(edit.span.path == judged.source.path for edit in chosen.edits)
    ]
    planned = fixer.plan(candidates, {judged.source.path: judged.source})
    replacements = planned.replacements.get(judged.source.path, ())
    if not replacements:
        return None
    edits = []
    for replacement in replacements:
        start, end = judged.source.position(replacement.start), judged.source.position(replacement.end)
        where = range_of(judged.source, Span(judged.source.path, start, end), codec)
        edits.append(lsp.TextEdit(range=where, new_text=replacement.text))
    return lsp.WorkspaceEdit(changes={judged.uri: edits})
