"""Notebook synchronisation: opened, changed, saved and closed notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.features.watched_files import take_changes
from pallas_lint.server.workspace.documents import Documents

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pallas_lint.server.app import PallasServer


def opened(ls: PallasServer, params: lsp.DidOpenNotebookDocumentParams) -> None:
    ls.reporter.opened(params.notebook_document.uri)
    ls.notebooks.put(params.notebook_document.uri)


def changed(ls: PallasServer, params: lsp.DidChangeNotebookDocumentParams) -> None:
    ls.notebooks.put(params.notebook_document.uri)


def saved(ls: PallasServer, params: lsp.DidSaveNotebookDocumentParams) -> None:
    ls.documents.saved(params.notebook_document.uri)
    take_changes(ls, {Documents.path(params.notebook_document.uri)})


def closed(ls: PallasServer, params: lsp.DidCloseNotebookDocumentParams) -> None:
    uri = params.notebook_document.uri
    ls.documents.close(uri)
    ls.reporter.closed(uri, Documents.shown(uri))
    ls.notebooks.close(uri)
