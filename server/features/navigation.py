"""Ways between kernels, refs and launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

OPTIONS = lsp.DocumentSymbolOptions(label="Pallas kernels")


async def definition(ls: PallasServer, params: lsp.DefinitionParams) -> list[lsp.Location]:
    judged = await ls.documents.judged(params.text_document.uri)
    if judged is None:
        return []
    from pallas_lint.server.views import navigation

    return navigation.definitions(judged, params.position, ls.workspace.position_codec)


async def references(ls: PallasServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
    judged = await ls.documents.judged(params.text_document.uri)
    if judged is None:
        return []
    from pallas_lint.server.views import navigation

    return navigation.launches_of(judged, params.position, ls.workspace.position_codec)


async def document_symbol(ls: PallasServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    judged = await ls.documents.judged(params.text_document.uri)
    if judged is None:
        return []
    from pallas_lint.server.views import navigation

    return navigation.outline(judged, ls.workspace.position_codec)
