"""The server itself: which requests it answers, and with what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server import actions, views
from pallas_lint.server.completion import completions
from pallas_lint.server.diagnostics import diagnostics_of, read
from pallas_lint.server.documents import Documents, Judged
from pygls.lsp.server import LanguageServer

from pallas_lint import __version__

if TYPE_CHECKING:
    from pallas_lint.source import Source

SETTINGS_FILES = ("**/pyproject.toml", "**/pallas-lint.toml", "**/*.py")


class PallasServer(LanguageServer):
    """One server; the client's settings come with `initialize` and `workspace/didChangeConfiguration`."""

    def __init__(self) -> None:
        super().__init__(
            "pallas-lint",
            __version__,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
            notebook_document_sync=None,
        )
        self.documents = Documents(self.show, self.failed)
        self.crashes: set[str] = set()
        self.pulls = False  # the client asks for diagnostics: nothing is pushed then

    # -- what goes to the client -----------------------------------------------------------------------------------

    def show(self, judged: Judged) -> None:
        """A new verdict: push it, or tell a client that pulls to ask again."""
        if self.pulls:
            return
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=judged.uri, version=judged.version, diagnostics=self.diagnostics(judged))
        )

    def diagnostics(self, judged: Judged) -> list[lsp.Diagnostic]:
        return diagnostics_of(judged, self.workspace.position_codec, self.text_of)

    def text_of(self, path: str) -> Source | None:
        """The text of a file as the user has it: from the editor where it is open, else from disk."""
        for uri in self.documents.open:
            if self.documents.shown(uri) == path:
                return self.documents.source(uri)
        return read(path)

    def failed(self, details: str) -> None:
        """A crash of the engine: told once, the details go to the log."""
        last = details.strip().splitlines()[-1]
        if last not in self.crashes:
            self.crashes.add(last)
            self.window_log_message(lsp.LogMessageParams(type=lsp.MessageType.Error, message=details))
            message = f"pallas-lint failed on a file: {last}"
            self.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Error, message=message))

    def configure(self, given: object) -> None:
        """Take the client's settings: those of `[tool.pallas-lint]`, and `python`."""
        given = given if isinstance(given, dict) else {}
        inner = given.get("pallasLint", given.get("settings", given))
        options: dict[str, Any] = dict(inner) if isinstance(inner, dict) else {}
        self.documents.python = options.pop("interpreter", None) or options.pop("python", None) or None
        from pallas_lint.settings import configurable

        known = configurable()
        self.documents.options = {key: value for key, value in options.items() if key in known and value is not None}


def create() -> PallasServer:
    """A server that is ready to be started."""
    server = PallasServer()
    _lifecycle(server)
    _documents(server)
    _requests(server)
    return server


def _lifecycle(server: PallasServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(ls: PallasServer, params: lsp.InitializeParams) -> None:
        ls.configure(params.initialization_options)
        document = params.capabilities.text_document
        ls.pulls = document is not None and document.diagnostic is not None

    @server.feature(lsp.INITIALIZED)
    async def initialized(ls: PallasServer, _: lsp.InitializedParams) -> None:
        """Have the client watch what verdicts rest on besides the open documents."""
        workspace = ls.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is None or not watching.dynamic_registration:
            return
        watchers = [lsp.FileSystemWatcher(glob_pattern=pattern) for pattern in SETTINGS_FILES]
        registration = lsp.Registration(
            id="pallas-lint-files",
            method=lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES,
            register_options=lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers),
        )
        await ls.client_register_capability_async(lsp.RegistrationParams(registrations=[registration]))

    @server.feature(lsp.SHUTDOWN)
    def shutdown(ls: PallasServer, _: object) -> None:
        ls.documents.shutdown()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed_configuration(ls: PallasServer, params: lsp.DidChangeConfigurationParams) -> None:
        ls.configure(params.settings)
        ls.documents.reload()
        _refresh(ls)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed_files(ls: PallasServer, params: lsp.DidChangeWatchedFilesParams) -> None:
        if any(change.uri not in ls.documents.open for change in params.changes):
            ls.documents.reload()
            _refresh(ls)


def _refresh(ls: PallasServer) -> None:
    workspace = ls.client_capabilities.workspace
    pulled = workspace.diagnostics if workspace is not None else None
    if ls.pulls and pulled is not None and pulled.refresh_support:
        ls.workspace_diagnostic_refresh(None)


def _documents(server: PallasServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: PallasServer, params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        ls.documents.put(document.uri, document.version, document.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: PallasServer, params: lsp.DidChangeTextDocumentParams) -> None:
        document = ls.workspace.get_text_document(params.text_document.uri)
        ls.documents.put(params.text_document.uri, params.text_document.version, document.source)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: PallasServer, params: lsp.DidCloseTextDocumentParams) -> None:
        ls.documents.close(params.text_document.uri)
        if not ls.pulls:
            ls.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(uri=params.text_document.uri, diagnostics=[])
            )


def _requests(server: PallasServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(identifier="pallas-lint", inter_file_dependencies=True, workspace_diagnostics=False),
    )
    async def pulled(ls: PallasServer, params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
        judged = await ls.documents.judged(params.text_document.uri)
        items = ls.diagnostics(judged) if judged is not None else []
        return lsp.RelatedFullDocumentDiagnosticReport(items=items)

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix, actions.FIX_ALL]),
    )
    async def code_action(ls: PallasServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        judged = await ls.documents.judged(params.text_document.uri)
        if judged is None:
            return []
        only = [str(getattr(kind, "value", kind)) for kind in params.context.only] if params.context.only else None
        codec = ls.workspace.position_codec
        return actions.code_actions(judged, params.range, only, codec, ls.text_of, params.context.diagnostics)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(ls: PallasServer, params: lsp.HoverParams) -> lsp.Hover | None:
        judged = await ls.documents.judged(params.text_document.uri)
        return views.hover(judged, params.position, ls.workspace.position_codec) if judged is not None else None

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(ls: PallasServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        judged = await ls.documents.judged(params.text_document.uri)
        return views.inlay_hints(judged, params.range, ls.workspace.position_codec) if judged is not None else []

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    async def code_lens(ls: PallasServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        judged = await ls.documents.judged(params.text_document.uri)
        if judged is None:
            return []
        known = await asyncio.to_thread(_facts, judged)
        return views.code_lenses(judged, ls.workspace.position_codec, known)

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["=", ",", ":"]))
    def completion(ls: PallasServer, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        source = ls.documents.source(params.text_document.uri)
        if source is None or params.position.line >= source.line_count:
            return []
        text = source.line(params.position.line + 1)
        codec = ls.workspace.position_codec
        column = codec.position_from_client_units([text], lsp.Position(0, params.position.character)).character
        return completions(source, params.position.line, text[:column])


def _facts(judged: Judged) -> dict[str, Any] | None:
    """What the last probe of this very text found; read from the cache folder, nothing is run."""
    from pallas_lint.probe import facts
    from pallas_lint.project import project_root

    file = Documents.path(judged.uri)
    return facts.load(project_root(file.parent), file, judged.source.text)
