"""Document synchronisation: opened, changed, saved and closed documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.features.watched_files import take_changes
from pallas_lint.server.workspace import settings_files
from pallas_lint.server.workspace.documents import Documents

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pallas_lint.server.app import PallasServer


def opened(ls: PallasServer, params: lsp.DidOpenTextDocumentParams) -> None:
    document = params.text_document
    ls.reporter.opened(document.uri)
    ls.documents.put(document.uri, document.version, document.text)
    if settings_files.is_one(Documents.path(document.uri)):
        ls.reporter.settings_changed(Documents.shown(document.uri))


def changed(ls: PallasServer, params: lsp.DidChangeTextDocumentParams) -> None:
    uri = params.text_document.uri
    ls.documents.put(uri, params.text_document.version, ls.workspace.get_text_document(uri).source)
    if settings_files.is_one(Documents.path(uri)):
        ls.reporter.settings_changed(Documents.shown(uri))


def saved(ls: PallasServer, params: lsp.DidSaveTextDocumentParams) -> None:
    ls.documents.saved(params.text_document.uri)
    # Clients that watch no files report at least what they save themselves.
    take_changes(ls, {Documents.path(params.text_document.uri)})


def closed(ls: PallasServer, params: lsp.DidCloseTextDocumentParams) -> None:
    uri = params.text_document.uri
    ls.documents.close(uri)
    ls.reporter.closed(uri, Documents.shown(uri))
