"""Code actions: the findings' own fixes, silencing them, and `source.fixAll`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.actions import disabling, fixing
from pallas_lint.server.protocol.edits import workspace_edit
from pallas_lint.server.protocol.positions import from_lsp, range_of, touches
from pygls import uris

from pallas_lint.records import frozen
from pallas_lint.run import fixer
from pallas_lint.triage import silencing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Edit, Finding, Fix
    from pallas_lint.text.source import Source

TUNE = "pallasLint.tune"
_OF_BLOCKS = frozenset({"PAL801", "PAL802", "PAL804"})
FIX_ALL = "source.fixAll.pallasLint"
DISABLE_LINE = "quickfix.pallasLint.disableLine"
DISABLE_FILE = "quickfix.pallasLint.disableFile"
DISABLE_PROJECT = "quickfix.pallasLint.disableProject"
KINDS = (lsp.CodeActionKind.QuickFix.value, DISABLE_LINE, DISABLE_FILE, DISABLE_PROJECT, FIX_ALL)


@frozen
class ActionRequest:
    """A request for code actions: on a range of a document, of the kinds `only` (None: for the lightbulb).

    `findings` are those in the document, whichever file's kernels they concern.
    """

    state: DocumentState
    findings: Sequence[Finding]
    range: lsp.Range
    only: Sequence[str] | None
    diagnostics: Sequence[lsp.Diagnostic]
    codec: PositionCodec
    client: lsp.ClientCapabilities
    text_of: Callable[[str], Source | None]
    uri_of: Callable[[str], str]

    def wants(self, kind: str) -> bool:
        return self.only is None or any(kind == each or kind.startswith(f"{each}.") for each in self.only)

    @property
    def wants_quick_fixes(self) -> bool:
        return any(self.wants(kind) for kind in KINDS if kind != FIX_ALL)

    def here(self) -> list[Finding]:
        """The findings at the range."""
        source = self.state.source
        first, last = (from_lsp(source, place, self.codec) for place in (self.range.start, self.range.end))
        return [each for each in self.findings if touches(each.span, first, last)]

    def edit(self, edits: Iterable[Edit], *, new: Path | None = None) -> lsp.WorkspaceEdit | None:
        """Edits of files as the client takes them; None where it cannot, or where a file cannot be read."""
        changes: dict[str, list[lsp.TextEdit]] = {}
        for edit in edits:
            path = edit.span.path
            if new is not None:
                where, text = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)), edit.text
            else:
                source = self.state.source if path == self.state.source.path else self.text_of(path)
                if source is None:
                    return None
                where = range_of(source, edit.span, self.codec)
                text = fixer.with_newlines(edit.text, source.text, source.offset(edit.span.start))
            changes.setdefault(self.uri_of(path), []).append(lsp.TextEdit(range=where, new_text=text))
        if not changes:
            return None
        return workspace_edit(changes, self.client, new=uris.from_fs_path(str(new)) if new is not None else None)

    def action(
        self, title: str, kind: str, finding: Finding, edit: lsp.WorkspaceEdit | None, *, preferred: bool = False
    ) -> Iterator[lsp.CodeAction]:
        shown = [each for each in self.diagnostics if each.code == finding.code]
        if edit is not None:
            yield lsp.CodeAction(
                title=f"{finding.code}: {title}",
                kind=kind,
                diagnostics=shown or None,
                is_preferred=True if preferred else None,
                edit=edit,
            )


def quick_fixes(request: ActionRequest) -> list[lsp.CodeAction]:
    """Fixes of the findings at the range, then the ways to silence them."""
    client = request.state.client
    here = request.here()
    actions: list[lsp.CodeAction] = []
    if client.fix_violation and request.wants(lsp.CodeActionKind.QuickFix.value):
        offered = [(finding, fix) for finding in here for fix in finding.fixes]
        safe = [(finding, fix) for finding, fix in offered if fix.applicability == "safe"]
        unsafe = [each for each in offered if each not in safe] if client.unsafe_fixes != "off" else []
        for finding, fix in safe:
            actions += request.action(_title(fix), "quickfix", finding, request.edit(fix.edits), preferred=True)
        actions += _all_of_a_rule(request, safe)
        for finding, fix in unsafe:
            remark = " (look at the result)" if client.unsafe_fixes == "hint" else ""
            actions += request.action(f"{_title(fix)}{remark}", "quickfix", finding, request.edit(fix.edits))
        actions += _tuning(request, here)
    if client.disable_rule_comment:
        for finding in {each.code: each for each in reversed(here)}.values():
            if finding.code not in silencing.NEVER:
                actions += _silencing(request, finding)
    return actions


def _tuning(request: ActionRequest, here: Sequence[Finding]) -> Iterator[lsp.CodeAction]:
    """The action that tries block sizes, where these may lower the cost of a launch."""
    finding = next((each for each in here if each.code in _OF_BLOCKS and each.origin == "probe"), None)
    if finding is not None:
        arguments = {"uri": request.state.uri, "line": finding.span.start.line - 1}
        command = lsp.Command(title="Try other block sizes", command=TUNE, arguments=[arguments])
        shown = [each for each in request.diagnostics if each.code == finding.code]
        yield lsp.CodeAction(
            f"{finding.code}: Try other block sizes", kind="quickfix", diagnostics=shown or None, command=command
        )


def _title(fix: Fix) -> str:
    return f"{fix.title[0].upper()}{fix.title[1:]}"


def _all_of_a_rule(request: ActionRequest, offered: Sequence[tuple[Finding, Fix]]) -> Iterator[lsp.CodeAction]:
    """The action that fixes all findings of a rule in the document, where there are several."""
    path = request.state.source.path
    candidates = [
        (finding, fix)
        for finding in request.findings
        if (fix := fixer.choose(finding, unsafe=False)) and all(edit.span.path == path for edit in fix.edits)
    ]
    count = Counter(finding.code for finding, _ in candidates)
    for finding in {each.code: each for each, _ in offered}.values():
        if count[finding.code] > 1:
            same = [each for each in candidates if each[0].code == finding.code]
            planned = fixer.plan(same, {path: request.state.source})
            edits = [edit for _, fix in planned.taken for edit in fix.edits]
            unique = list(dict.fromkeys(edits))
            yield from request.action(f"Fix all {finding.name} in this file", "quickfix", finding, request.edit(unique))


def _silencing(request: ActionRequest, finding: Finding) -> Iterator[lsp.CodeAction]:
    source, settings = request.state.source, request.state.settings
    if request.wants(DISABLE_LINE):
        fix = silencing.silencer(source, finding)  # None where no comment can stand
        edit = request.edit(fix.edits) if fix is not None else None
        yield from request.action(f"Disable {finding.name} on this line", DISABLE_LINE, finding, edit)
    if request.wants(DISABLE_FILE):
        edit = request.edit([disabling.in_file(source, finding.code)])
        yield from request.action(f"Disable {finding.name} in this file", DISABLE_FILE, finding, edit)
    if request.wants(DISABLE_PROJECT) and settings is not None:
        from pathlib import Path

        change = disabling.in_project(finding.code, Path(source.path).parent, settings, request.text_of)
        if change is not None:
            edit = request.edit([change.edit], new=change.file if change.new else None)
            title = f"Disable {finding.name} in the project ({change.file.name})"
            yield from request.action(title, DISABLE_PROJECT, finding, edit)


def fix_all(state: DocumentState, after: Source | None, codec: PositionCodec) -> list[lsp.CodeAction]:
    """The document as `--fix` would leave it, as one action; none where it stays as it is."""
    if after is None:
        return []
    edits = fixing.edits_between(state.source, after, codec)
    edit = lsp.WorkspaceEdit(changes={state.uri: edits})
    return [lsp.CodeAction(title="Fix all safe Pallas findings", kind=FIX_ALL, edit=edit)]
