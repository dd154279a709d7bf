"""Highlights and renaming of a kernel's parameters, for clients without a Python server that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

OPTIONS = lsp.RenameOptions(prepare_provider=True)


async def document_highlight(ls: PallasServer, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return []
    from pallas_lint.server.views.parameters import highlights

    return highlights(state, params.position, ls.workspace.position_codec)


async def prepare_rename(ls: PallasServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return None
    from pallas_lint.server.views.parameters import renamed_range

    return renamed_range(state, params.position, ls.workspace.position_codec)


async def rename(ls: PallasServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return None
    from pallas_lint.server.views.parameters import RenameError, renames

    try:
        edits = renames(state, params.position, params.new_name, ls.workspace.position_codec)
    except RenameError as error:
        raise JsonRpcInvalidParams(str(error)) from error
    return lsp.WorkspaceEdit(changes={state.uri: edits}) if edits else None
