"""Diagnostics for the client: pushed or pulled, for open documents and for the other files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.reporting.diagnostic_store import DiagnosticStore
from pallas_lint.server.reporting.diagnostics import Diagnostics, identify, problem_at
from pallas_lint.server.workspace import settings_files
from pygls import uris

from pallas_lint.config.settings import SettingsError
from pallas_lint.notebooks.notebook import Notebook
from pallas_lint.text import paths
from pallas_lint.triage.baseline import BaselineError
from pallas_lint.triage.pipeline import ReportContext, of_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.finding import FileResult, Finding, LintError

_PORTION = 50  # reports of files in one partial result
_NOTHING = identify([])


class Reporter:
    """Keeps the client's diagnostics as the verdicts are.

    Open documents are pushed to clients that do not pull; files that are not open are pushed to all clients but those
    that pull the whole workspace.
    """

    def __init__(self, server: PallasServer) -> None:
        self._server = server
        self.store = DiagnosticStore()
        self.pulls = False  # the client pulls the diagnostics of open documents
        self._pulls_workspace = False
        self._pushed: dict[str, str] = {}  # uri -> result id of what was pushed for files that are not open
        self._given: dict[str, tuple[int | None, str]] = {}  # uri -> version and result id that the client pulled
        self._made: dict[str, Diagnostics] = {}  # by path
        self._broken: set[str] = set()  # settings files that could not be read
        self._changed = asyncio.Event()
        self._refreshing = False

    # -- news ------------------------------------------------------------------------------------------------------

    def document_checked(self, state: DocumentState) -> None:
        """A new verdict on an open document."""
        touched = self.store.put(state.verdict)
        if isinstance(state.problem, SettingsError):
            self.settings_problem(state.problem, self._server.folders.of(Path(state.source.path)).path)
        elif state.settings is not None and state.settings.jax.problem is not None:
            problem = state.settings.jax.problem
            self._server.show_problems([f"{problem.path}: {problem.message}"])
        self._publish({state.source.path, *touched})

    def closed(self, uri: str, path: str) -> None:
        touched = self.store.close(path)
        self._given.pop(uri, None)
        self._made.pop(path, None)
        if not self.pulls:
            self._push(uri, None, [])
        self._publish({path, *touched})

    def opened(self, uri: str) -> None:
        """Diagnostics pushed for a file are removed when the client pulls them instead."""
        if self.pulls and self._pushed.pop(uri, None) is not None:
            self._push(uri, None, [])

    def workspace_linted(self, folder: Path, verdicts: Iterable[FileResult]) -> None:
        """The verdicts of a run over a folder."""
        self._publish(self.store.replace_folder(folder, verdicts))

    def settings_problem(self, error: SettingsError | LintError, folder: Path) -> None:
        """Settings that cannot be used: shown in their file, else in a message."""
        file = folder / (error.path or "")
        if error.path and paths.is_file(file) and settings_files.is_one(file):
            self._broken.add(file.as_posix())
            self._publish({file.as_posix()})
        else:
            self._server.show_problems([f"{error.path}: {error.message}" if error.path else error.message])

    def settings_changed(self, path: str) -> None:
        """A settings file was edited, saved, or changed on disk."""
        self._publish({path})

    # -- diagnostics -----------------------------------------------------------------------------------------------

    def diagnostics(self, path: str) -> list[lsp.Diagnostic]:
        """All diagnostics of a file."""
        server = self._server
        if settings_files.is_one(Path(path)):
            return self._of_settings(path)
        uri = server.documents.uri_of(path)
        state = server.documents.known(uri) if uri is not None else None
        source = state.source if state is not None else server.documents.text_of(path)
        if source is None:
            return []
        findings, codec, text_of = self.findings(path), server.workspace.position_codec, server.documents.text_of
        made = self._made.setdefault(path, Diagnostics()) if state is not None else Diagnostics()
        analysis = state.analysis if state is not None and state.has_analysis else None
        found = made.of(findings, source, codec, text_of, analysis.launches if analysis is not None else ())
        if state is not None and isinstance(state.problem, str):
            found.append(problem_at(state.problem))
        if state is not None and state.remark is not None:
            found.append(problem_at(state.remark, severity=lsp.DiagnosticSeverity.Information))
        if isinstance(source, Notebook) and state is None:
            return self._server.notebooks.of_file(found, source)
        return found

    def findings(self, path: str) -> tuple[Finding, ...]:
        """The findings in a file that are to be shown; a baseline that cannot be read hides none."""
        found, folder = self.store.findings(path), self._server.folders.of(Path(path))

        def without_known(findings: Sequence[Finding]) -> Sequence[Finding]:
            try:
                return folder.new(findings, self._server.documents.text_of)
            except BaselineError as error:
                self._server.show_problems([error.message])
                return findings

        context = ReportContext(folder.jax_of(found), without_known, at_each_place=True)
        return tuple(of_report(found, context))

    def _of_settings(self, path: str) -> list[lsp.Diagnostic]:
        source = self._server.documents.text_of(path)
        error = settings_files.problem(Path(path), source.text) if source is not None else None
        if error is None:
            self._broken.discard(path)
            return []
        return [problem_at(error.message, error.line or 1, source)]

    def uri(self, path: str) -> str:
        return self._server.documents.uri_of(path) or uris.from_fs_path(path) or path

    # -- push ------------------------------------------------------------------------------------------------------

    def _publish(self, paths: Iterable[str]) -> None:
        for path in sorted(set(paths)):
            uri = self.uri(path)
            is_open = self._server.documents.source(uri) is not None
            if (is_open and self.pulls) or (not is_open and self._pulls_workspace):
                if is_open:
                    self._refresh_if_stale(uri, path)
                continue
            found = self.diagnostics(path)
            if is_open:
                self._pushed.pop(uri, None)
                state = self._server.documents.known(uri)
                self._push(uri, state.version if state is not None else None, found)
            elif identify(found) != self._pushed.get(uri, _NOTHING):
                self._pushed[uri] = identify(found)
                self._push(uri, None, found)
        self._changed.set()

    def _push(self, uri: str, version: int | None, found: list[lsp.Diagnostic]) -> None:
        self._server.notebooks.published(uri, version, found)

    def _refresh_if_stale(self, uri: str, path: str) -> None:
        """Have the client pull again where its diagnostics are outdated, though it changed nothing itself."""
        state, given = self._server.documents.known(uri), self._given.get(uri)
        version = state.version if state is not None else None
        if given is None or given[0] != version or given[1] == identify(self.diagnostics(path)):
            return
        workspace = self._server.client_capabilities.workspace
        can = workspace.diagnostics if workspace is not None else None
        if can is not None and can.refresh_support and not self._refreshing:
            self._refreshing = True
            asyncio.get_running_loop().call_later(0.02, self._refresh)

    def _refresh(self) -> None:
        self._refreshing = False
        self._server.workspace_diagnostic_refresh(None)

    # -- pull ------------------------------------------------------------------------------------------------------

    async def document(self, params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
        """The diagnostics of one document, or that they are those which the client has."""
        uri = params.text_document.uri
        path = self._server.documents.shown(uri)
        state = await self._server.documents.reported(uri)
        found = self.diagnostics(path) if state is not None or settings_files.is_one(Path(path)) else []
        known = identify(found)
        if state is not None:
            self._given[uri] = (state.version, known)
        if params.previous_result_id == known:
            return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=known)
        return lsp.RelatedFullDocumentDiagnosticReport(items=found, result_id=known)

    async def workspace(self, params: lsp.WorkspaceDiagnosticParams) -> lsp.WorkspaceDiagnosticReport:
        """What has changed since the client's last pull; waits until something has."""
        if not self._pulls_workspace:
            self._pulls_workspace = True
            for uri in self._pushed:
                self._push(uri, None, [])
            self._pushed.clear()
        previous = {each.uri: each.value for each in params.previous_result_ids}
        while True:
            self._changed.clear()
            reports = list(self._reports(previous))
            if any(isinstance(report, lsp.WorkspaceFullDocumentDiagnosticReport) for report in reports):
                break
            await self._changed.wait()
        if params.partial_result_token is None:
            return lsp.WorkspaceDiagnosticReport(items=reports)
        for start in range(0, len(reports), _PORTION):
            portion = lsp.WorkspaceDiagnosticReportPartialResult(items=reports[start : start + _PORTION])
            self._server.progress(lsp.ProgressParams(token=params.partial_result_token, value=portion))
            await asyncio.sleep(0)  # what the client types meanwhile goes first
        return lsp.WorkspaceDiagnosticReport(items=[])

    def _reports(self, previous: Mapping[str, str]) -> Iterator[lsp.WorkspaceDocumentDiagnosticReport]:
        left = dict(previous)
        for path in (*self.store.paths, *sorted(self._broken)):
            for uri, version, found in self._parts(path):
                known = identify(found)
                before = left.pop(uri, _NOTHING)
                if before != known:
                    yield lsp.WorkspaceFullDocumentDiagnosticReport(uri, found, version, result_id=known)
                elif uri in previous:
                    yield lsp.WorkspaceUnchangedDocumentDiagnosticReport(uri, known, version)
        for uri, before in left.items():
            if before != _NOTHING:
                yield lsp.WorkspaceFullDocumentDiagnosticReport(uri, [], None, result_id=_NOTHING)

    def _parts(self, path: str) -> Iterator[tuple[str, int | None, list[lsp.Diagnostic]]]:
        """The documents that a file is to the client, with versions and diagnostics: of an open notebook the cells."""
        uri = self.uri(path)
        state = self._server.documents.known(uri)
        found = self.diagnostics(path)
        if state is not None and isinstance(state.source, Notebook):
            yield from self._server.notebooks.by_cell(found, state.source)
        else:
            yield uri, state.version if state is not None else None, found
