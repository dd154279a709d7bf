"""What the server does for documents: keeps their texts, and answers requests about them.

What shows the engine's work is imported when there is some: the engine takes longer to import than clients should wait
for the answer to `initialize`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.actions import code_actions
from pallas_lint.server.protocol.positions import from_lsp
from pallas_lint.server.protocol.session import argument
from pallas_lint.server.views import information
from pallas_lint.server.views.rule_completion import completions
from pallas_lint.server.workspace import settings_files
from pallas_lint.server.workspace.client_settings import client_commands
from pallas_lint.server.workspace.configuring import take_changes
from pallas_lint.server.workspace.documents import Documents
from pallas_lint.server.workspace.folders import file_of

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer


def register(server: PallasServer) -> None:
    """Answer what a client says and asks about documents."""
    _documents(server)
    _end(server)
    _diagnostics(server)
    _requests(server)
    _own_requests(server)


def _documents(server: PallasServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: PallasServer, params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        ls.reporter.opened(document.uri)
        ls.documents.put(document.uri, document.version, document.text)
        if settings_files.is_one(Documents.path(document.uri)):
            ls.reporter.settings_changed(Documents.shown(document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: PallasServer, params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        ls.documents.put(uri, params.text_document.version, ls.workspace.get_text_document(uri).source)
        if settings_files.is_one(Documents.path(uri)):
            ls.reporter.settings_changed(Documents.shown(uri))

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: PallasServer, params: lsp.DidSaveTextDocumentParams) -> None:
        ls.documents.saved(params.text_document.uri)
        # Clients that watch no files say at least what they save themselves.
        take_changes(ls, {Documents.path(params.text_document.uri)})

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: PallasServer, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        ls.documents.close(uri)
        ls.reporter.closed(uri, Documents.shown(uri))


def _end(server: PallasServer) -> None:
    @server.feature(lsp.SHUTDOWN)
    def shutdown(ls: PallasServer, _: object) -> None:
        ls.prober.shutdown()
        ls.sweeper.stop()
        ls.documents.shutdown()


def _diagnostics(server: PallasServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(identifier="pallas-lint", inter_file_dependencies=True, workspace_diagnostics=True),
    )
    async def pulled(ls: PallasServer, params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
        return await ls.reporter.document(params)

    @server.feature(lsp.WORKSPACE_DIAGNOSTIC)
    async def pulled_workspace(
        ls: PallasServer, params: lsp.WorkspaceDiagnosticParams
    ) -> lsp.WorkspaceDiagnosticReport:
        return await ls.reporter.workspace(params)

    @server.command("pallasLint.lintWorkspace")
    async def lint_workspace(ls: PallasServer, *_: Any) -> dict[str, Any]:
        return await ls.sweeper.command()


def _requests(server: PallasServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=list(code_actions.KINDS)))
    async def code_action(ls: PallasServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        judged = await ls.documents.judged(params.text_document.uri)
        if judged is None:
            return []
        asked = code_actions.Asked(
            judged,
            ls.reporter.findings(judged.source.path),
            params.range,
            [str(getattr(kind, "value", kind)) for kind in params.context.only] if params.context.only else None,
            params.context.diagnostics,
            ls.workspace.position_codec,
            ls.client_capabilities,
            ls.documents.text_of,
            ls.reporter.uri,
        )
        found = code_actions.quick_fixes(asked) if asked.wants_quick_fixes else []
        # On save, or from the menu of source actions: never in the lightbulb.
        if judged.client.fix_all and asked.only is not None and asked.wants(code_actions.FIX_ALL):
            found += code_actions.fix_all(
                judged, await ls.documents.fixed(judged, params.range.start.line + 1), asked.codec
            )
        return found

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(ls: PallasServer, params: lsp.HoverParams) -> lsp.Hover | None:
        uri, codec = params.text_document.uri, ls.workspace.position_codec
        source = ls.documents.source(uri)
        if source is not None and settings_files.is_one(Documents.path(uri)):
            place = from_lsp(source, params.position, codec)
            text = settings_files.hover(Documents.path(uri), source, place.line, place.column)
            return lsp.Hover(contents=text) if text is not None else None
        judged = await ls.documents.judged(uri)
        if judged is None:
            return None
        from pallas_lint.server.views import hover

        return hover.hover(judged, params.position, codec)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(ls: PallasServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        judged = await ls.documents.judged(params.text_document.uri)
        if judged is None:
            return []
        from pallas_lint.server.views import hover

        return hover.inlay_hints(judged, params.range, ls.workspace.position_codec)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=False))
    async def code_lens(ls: PallasServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        judged = await ls.documents.judged(params.text_document.uri)
        if judged is None:
            return []
        from pallas_lint.server.views.code_lenses import code_lenses

        can = client_commands(ls.initial_settings)
        return await ls.documents.on_thread(code_lenses, judged, ls.workspace.position_codec, can)

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=["=", ",", ":", '"', "["]))
    def completion(ls: PallasServer, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        uri, codec = params.text_document.uri, ls.workspace.position_codec
        source = ls.documents.source(uri)
        if source is None or params.position.line >= source.line_count:
            return []
        cursor = from_lsp(source, params.position, codec)
        if settings_files.is_one(Documents.path(uri)):
            return settings_files.completions(Documents.path(uri), source, cursor, codec)
        return completions(source, cursor, codec)


def _own_requests(server: PallasServer) -> None:
    @server.feature("pallasLint/status")
    async def status(ls: PallasServer, params: Any) -> dict[str, Any]:
        uri = argument(params).get("uri")
        first = next(iter(ls.folders), ls.folders.rest)
        file = Documents.path(uri) if uri else first.path / "untitled.py"
        folder = ls.folders.of(file)
        return await ls.documents.on_thread(information.status, folder, file, ls.probe_allowed)

    @server.command("pallasLint.createConfig")
    async def create_config(ls: PallasServer, *given: Any) -> dict[str, Any]:
        told = argument(given[0] if given else None)
        uri, folder = told.get("uri"), told.get("folder")
        if isinstance(uri, str):
            path = file_of(uri)
        else:
            path = Path(str(folder)) if folder else next(iter(ls.folders), ls.folders.rest).path
        if path is None:
            return {"outcome": "failed", "uri": uri, "message": f"{uri} is no folder on a disk"}
        return await settings_files.create(ls, path)

    @server.feature("pallasLint/rule")
    def rule(ls: PallasServer, params: Any) -> dict[str, str] | None:
        return information.rule_page(str(argument(params).get("code", "")))
