"""Navigation: definitions, references, symbols and call hierarchy of kernels, refs and launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.session import argument

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.document_state import DocumentState

OPTIONS = lsp.DocumentSymbolOptions(label="Pallas kernels")


async def definition(ls: PallasServer, params: lsp.DefinitionParams) -> list[lsp.Location]:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return []
    from pallas_lint.server.views import navigation

    return navigation.definitions(state, params.position, ls.workspace.position_codec)


async def references(ls: PallasServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return []
    from pallas_lint.server.views import navigation

    return navigation.launches_of(state, params.position, ls.workspace.position_codec)


async def document_symbol(ls: PallasServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return []
    from pallas_lint.server.views import navigation

    return navigation.outline(state, ls.workspace.position_codec)


async def workspace_symbol(ls: PallasServer, params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
    states = await ls.documents.every_state()
    from pallas_lint.server.views.workspace_symbols import symbols

    launches = ls.workspace_linter.launches()
    found = symbols(params.query, states, launches, ls.workspace.position_codec, ls.reporter.uri)
    return ls.notebooks.located(found)


async def prepare_hierarchy(ls: PallasServer, params: lsp.CallHierarchyPrepareParams) -> list[lsp.CallHierarchyItem]:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return []
    from pallas_lint.server.views import hierarchy

    return hierarchy.prepare(state, params.position, ls.workspace.position_codec)


async def incoming_calls(
    ls: PallasServer, params: lsp.CallHierarchyIncomingCallsParams
) -> list[lsp.CallHierarchyIncomingCall]:
    state = await _state(ls, params.item)
    if state is None:
        return []
    from pallas_lint.server.views import hierarchy

    return hierarchy.incoming(state, params.item, ls.workspace.position_codec)


async def outgoing_calls(
    ls: PallasServer, params: lsp.CallHierarchyOutgoingCallsParams
) -> list[lsp.CallHierarchyOutgoingCall]:
    state = await _state(ls, params.item)
    if state is None:
        return []
    from pallas_lint.server.views import hierarchy

    return hierarchy.outgoing(state, params.item, ls.workspace.position_codec)


async def _state(ls: PallasServer, item: lsp.CallHierarchyItem) -> DocumentState | None:
    """The document that an item came from."""
    uri = argument(item.data).get("uri")
    state = await ls.documents.state(uri) if isinstance(uri, str) else None
    return state if state is not None and state.has_analysis else None
