"""Fixing a document as `--fix` does it, in as many rounds as it takes; nothing is written here."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import range_of

from pallas_lint.finding import Span
from pallas_lint.records import evolve
from pallas_lint.run import fixer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Finding, Fix
    from pallas_lint.run.project import Project
    from pallas_lint.text.source import Source


def fixed(
    state: DocumentState, project: Project, *, cell: int | None = None, is_stale: Callable[[], bool] = lambda: False
) -> Source | None:
    """The document with all its safe fixes; None where nothing changes.

    With `cell` those that change that cell only: editors fix the cells of a notebook side by side, each by itself.

    Raises Abandoned soon after `is_stale` returns true.

    Called on the judging thread. `project` has the open documents; what it has of this one is put back.
    """
    from pallas_lint import lint

    settings = state.settings
    if settings is None or not state.findings:
        return None
    path = state.source.path
    file, overlay = project.file(path), project.overlay

    def relint(sources: Mapping[str, Source], _: frozenset[str]) -> list[Finding]:
        project.overlay = {**overlay, file: sources[path]}
        return _wanted(lint.check_file(sources[path], settings, project, is_stale).result.findings, sources[path], cell)

    try:
        outcome = fixer.fix({path: state.source}, _wanted(state.findings, state.source, cell), relint)
    finally:
        project.overlay = overlay
    return outcome.changed[path][1] if path in outcome.changed else None


def _wanted(findings: tuple[Finding, ...], source: Source, cell: int | None) -> list[Finding]:
    """The findings to fix; the others stay without their fixes, for the fixer to see what it breaks."""
    if cell is None:
        return list(findings)
    return [
        evolve(finding, fixes=tuple(fix for fix in finding.fixes if _cells(fix, source) == {cell}))
        for finding in findings
    ]


def _cells(fix: Fix, source: Source) -> set[int | None]:
    return {source.to_cell(edit.span).cell if edit.span.path == source.path else None for edit in fix.edits}


def edits_between(before: Source, after: Source, codec: PositionCodec) -> list[lsp.TextEdit]:
    """The edits of whole lines that make one text of the other: marks and cursors elsewhere stay where they are."""
    return [
        lsp.TextEdit(range=range_of(before, span, codec), new_text=text) for span, text in _changed_lines(before, after)
    ]


def _changed_lines(before: Source, after: Source) -> Iterator[tuple[Span, str]]:
    old, new = (re.findall(r"[^\r\n]+(?:\r\n|\n|\r)?|\r\n|\n|\r", source.written) for source in (before, after))
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    for tag, first, last, new_first, new_last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            span = Span(before.path, before.position(starts[first]), before.position(starts[last]))
            yield span, "".join(new[new_first:new_last])
