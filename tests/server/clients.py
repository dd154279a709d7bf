"""Clients of several kinds, connected to a server in this very process: a session costs milliseconds, not a start."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import socket
import threading
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from lsprotocol import types as lsp
from pallas_lint.server import app
from pallas_lint.server.registration import create
from pallas_lint.server.reporting.diagnostics import make_converter
from pygls.io_ import run_async
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient, client_capabilities
from pytest_lsp.client import register_lsp_features

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.server.app import PallasServer
    from pygls.protocol import JsonRPCProtocol

LIMIT = 300.0  # seconds after which something that does not happen counts as missing


# They compile code for each type of message that they meet: done once, not for each session.
_client_converter = functools.cache(default_converter)
_server_converter = functools.cache(make_converter)


@functools.cache
def capabilities(profile: str) -> lsp.ClientCapabilities:
    """What a kind of client says it can: an editor's, "minimal" (nothing) or "pull" (requests all diagnostics)."""
    if profile == "minimal":
        return lsp.ClientCapabilities()
    if profile == "pull":
        return lsp.ClientCapabilities(
            workspace=lsp.WorkspaceClientCapabilities(
                apply_edit=True,
                configuration=True,
                workspace_folders=True,
                diagnostics=lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True),
                workspace_edit=lsp.WorkspaceEditClientCapabilities(
                    document_changes=True, resource_operations=[lsp.ResourceOperationKind.Create]
                ),
            ),
            text_document=lsp.TextDocumentClientCapabilities(diagnostic=lsp.DiagnosticClientCapabilities()),
            window=lsp.WindowClientCapabilities(work_done_progress=True),
        )
    return client_capabilities(profile)


class Editor:
    """A client with its documents, and the server behind it."""

    def __init__(self, client: LanguageClient, server: PallasServer) -> None:
        self.client = client
        self.server = server
        self.refreshed = 0
        self.applied: list[lsp.WorkspaceEdit] = []
        self.progress: dict[object, list[dict[str, Any]]] = {}
        self._versions: dict[str, int] = {}
        self._happened = asyncio.Event()
        self._published: dict[str, lsp.PublishDiagnosticsParams] = {}

    def note(self, params: lsp.PublishDiagnosticsParams | None = None) -> None:
        if params is not None:
            self._published[params.uri] = params
        self._happened.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for what messages of the server bring about."""

        async def wait() -> None:
            while not condition():
                self._happened.clear()
                await self._happened.wait()

        await asyncio.wait_for(wait(), LIMIT)

    def open(self, uri: str, text: str, language: str = "python") -> None:
        self._versions[uri] = 1
        item = lsp.TextDocumentItem(uri=uri, language_id=language, version=1, text=text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))

    def change(self, uri: str, text: str) -> None:
        self._versions[uri] += 1
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                text_document=lsp.VersionedTextDocumentIdentifier(uri=uri, version=self._versions[uri]),
                content_changes=[lsp.TextDocumentContentChangeWholeDocument(text=text)],
            )
        )

    def save(self, uri: str) -> None:
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(document(uri)))

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(document(uri)))

    def touched(self, *files: Path, kind: lsp.FileChangeType = lsp.FileChangeType.Changed) -> None:
        """Files have changed on disk."""
        changes = [lsp.FileEvent(file.as_uri(), kind) for file in files]
        self.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams(changes))

    async def pulled(self, uri: str) -> list[lsp.Diagnostic]:
        """The document's diagnostics, requested."""
        report = await self.client.text_document_diagnostic_async(lsp.DocumentDiagnosticParams(document(uri)))
        assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
        return list(report.items)

    async def pushed(self, uri: str) -> list[lsp.Diagnostic]:
        """The diagnostics that the server sends for the newest version of an open document."""
        version = self._versions[uri]
        await self.until(lambda: uri in self._published and self._published[uri].version == version)
        return list(self._published[uri].diagnostics)

    def shown(self, uri: str) -> list[lsp.Diagnostic] | None:
        """What was pushed last for a document; None if nothing was."""
        return list(self._published[uri].diagnostics) if uri in self._published else None

    async def actions(self, uri: str, at: lsp.Range, *only: str) -> list[lsp.CodeAction]:
        context = lsp.CodeActionContext(diagnostics=await self.pulled(uri), only=list(only) or None)
        found = await self.client.text_document_code_action_async(lsp.CodeActionParams(document(uri), at, context))
        return [each for each in found or () if isinstance(each, lsp.CodeAction)]

    async def request(self, method: str, params: object = None) -> Any:
        return await self.client.protocol.send_request_async(method, params)

    @property
    def messages(self) -> list[str]:
        return [message.message for message in self.client.messages]


def document(uri: str) -> lsp.TextDocumentIdentifier:
    return lsp.TextDocumentIdentifier(uri=uri)


def everywhere() -> lsp.Range:
    return lsp.Range(lsp.Position(0, 0), lsp.Position(100_000, 0))


@contextlib.asynccontextmanager
async def session(
    profile: str = "pull",
    *folders: Path,
    options: object = None,
    configuration: Mapping[str, Any] | None = None,
    allow_probe: bool = False,
    trusted: bool = True,
    change: Callable[[PallasServer], None] | None = None,
) -> AsyncIterator[Editor]:
    """A session from `initialize` to `shutdown`.

    `configuration` is what the client answers for a folder's URI ("" for all others), below `pallasLint`.
    """
    with patch.object(app, "make_converter", _server_converter):
        server = create(allow_probe=allow_probe, trusted=trusted)
    client = LanguageClient(converter_factory=_client_converter)
    register_lsp_features(client)
    editor = Editor(client, server)
    _listen(client, editor)
    client._configuration = {
        scope: {"pallasLint": value} if value is not None else {}
        for scope, value in {"": None, **(configuration or {})}.items()
    }
    if change is not None:
        change(server)
    ends = socket.socketpair()
    serving = [
        asyncio.create_task(_serve(each.protocol, end)) for each, end in zip((server, client), ends, strict=True)
    ]
    while server.protocol.writer is None or client.protocol.writer is None:
        await asyncio.sleep(0)
    named = [lsp.WorkspaceFolder(folder.as_uri(), folder.name) for folder in folders]
    parameters = lsp.InitializeParams(
        capabilities=capabilities(profile),
        workspace_folders=named or None,
        initialization_options=options,
    )
    try:
        await asyncio.wait_for(client.initialize_session(parameters), LIMIT)
        yield editor
        await asyncio.wait_for(client.shutdown_async(None), LIMIT)
    finally:
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        for end in ends:
            end.close()


async def _serve(protocol: JsonRPCProtocol, end: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=end, limit=1 << 26)
    protocol.set_writer(writer)
    try:
        await run_async(threading.Event(), reader, protocol, logging.getLogger(__name__))
    finally:
        writer.close()


def _listen(client: LanguageClient, editor: Editor) -> None:
    features = client.protocol.fm.features
    published = features[lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS]

    def on_published(params: lsp.PublishDiagnosticsParams) -> None:
        published(params)
        editor.note(params)

    def on_refresh(_: object) -> None:
        editor.refreshed += 1
        editor.note()

    def on_message(params: lsp.ShowMessageParams) -> None:
        client.messages.append(params)
        editor.note()

    def on_edit(params: lsp.ApplyWorkspaceEditParams) -> lsp.ApplyWorkspaceEditResult:
        editor.applied.append(params.edit)
        return lsp.ApplyWorkspaceEditResult(applied=True)

    def on_progress(params: lsp.ProgressParams) -> None:
        editor.progress.setdefault(params.token, []).append(params.value)
        editor.note()

    features[lsp.PROGRESS] = on_progress
    features[lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS] = on_published
    features[lsp.WORKSPACE_DIAGNOSTIC_REFRESH] = on_refresh
    features[lsp.WINDOW_SHOW_MESSAGE] = on_message
    features[lsp.WORKSPACE_APPLY_EDIT] = on_edit
    features[lsp.CLIENT_REGISTER_CAPABILITY] = lambda _: None


def label(hint: lsp.InlayHint) -> str:
    """What a hint shows."""
    return hint.label if isinstance(hint.label, str) else "".join(part.value for part in hint.label)


def codes(found: Sequence[lsp.Diagnostic] | None) -> list[object]:
    return [each.code for each in found or ()]


def applied(text: str, edits: Sequence[Any]) -> str:
    """A text with edits in UTF-16 columns, as a client applies them."""
    lines = text.splitlines(keepends=True)

    def offset(position: lsp.Position) -> int:
        line = lines[position.line] if position.line < len(lines) else ""
        units = line.encode("utf-16-le")[: position.character * 2].decode("utf-16-le")
        return sum(map(len, lines[: position.line])) + len(units)

    for edit in sorted(edits, key=lambda each: offset(each.range.start), reverse=True):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text
