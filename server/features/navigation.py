"""Ways between kernels, refs and launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.session import argument

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.judged import Judged

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


async def prepare_hierarchy(ls: PallasServer, params: lsp.CallHierarchyPrepareParams) -> list[lsp.CallHierarchyItem]:
    judged = await ls.documents.judged(params.text_document.uri)
    if judged is None:
        return []
    from pallas_lint.server.views import hierarchy

    return hierarchy.prepare(judged, params.position, ls.workspace.position_codec)


async def incoming_calls(
    ls: PallasServer, params: lsp.CallHierarchyIncomingCallsParams
) -> list[lsp.CallHierarchyIncomingCall]:
    judged = await _judged(ls, params.item)
    if judged is None:
        return []
    from pallas_lint.server.views import hierarchy

    return hierarchy.incoming(judged, params.item, ls.workspace.position_codec)


async def outgoing_calls(
    ls: PallasServer, params: lsp.CallHierarchyOutgoingCallsParams
) -> list[lsp.CallHierarchyOutgoingCall]:
    judged = await _judged(ls, params.item)
    if judged is None:
        return []
    from pallas_lint.server.views import hierarchy

    return hierarchy.outgoing(judged, params.item, ls.workspace.position_codec)


async def _judged(ls: PallasServer, item: lsp.CallHierarchyItem) -> Judged | None:
    """The document that told of an item."""
    uri = argument(item.data).get("uri")
    judged = await ls.documents.judged(uri) if isinstance(uri, str) else None
    return judged if judged is not None and judged.judgement is not None and judged.judgement.analysis else None
