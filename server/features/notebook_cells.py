"""Requests about a notebook cell: passed on to its notebook, and answered for the cell."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import attrs
from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import moved

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.server.app import PallasServer


# Requests on a place in a document, or on all of it.
_METHODS = (
    lsp.TEXT_DOCUMENT_CODE_ACTION,
    lsp.TEXT_DOCUMENT_CODE_LENS,
    lsp.TEXT_DOCUMENT_COMPLETION,
    lsp.TEXT_DOCUMENT_DEFINITION,
    lsp.TEXT_DOCUMENT_DIAGNOSTIC,
    lsp.TEXT_DOCUMENT_SIGNATURE_HELP,
    lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL,
    lsp.TEXT_DOCUMENT_HOVER,
    lsp.TEXT_DOCUMENT_INLAY_HINT,
    lsp.TEXT_DOCUMENT_REFERENCES,
)


def answer_for_cells(server: PallasServer) -> None:
    """Have the server answer for cells too; to be called when all features are registered."""
    features = server.protocol.fm.features
    for method in _METHODS:
        features[method] = _of_cells(server, features[method])


def _of_cells(server: PallasServer, feature: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The feature, for cells too."""

    async def answered(params: Any) -> Any:
        while True:
            uri_of_cell = params.text_document.uri
            found = server.notebooks.of_cell(uri_of_cell)
            if found is None:
                answer = feature(params)
                answer = await answer if inspect.isawaitable(answer) else answer
                return server.notebooks.located(answer)
            uri, notebook, cell = found
            answer = feature(moved(attrs.evolve(params, text_document=lsp.TextDocumentIdentifier(uri)), cell.first - 1))
            answer = await answer if inspect.isawaitable(answer) else answer
            # Cells may have come and gone meanwhile: the answer is about the newest.
            if server.documents.source(uri) is notebook or server.notebooks.of_cell(uri_of_cell) is None:
                return server.notebooks.answer(answer, uri, notebook, cell)

    return answered
