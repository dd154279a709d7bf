"""Code lenses over launches and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.workspace.client_settings import client_commands

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

OPTIONS = lsp.CodeLensOptions(resolve_provider=False)


async def code_lens(ls: PallasServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return []
    from pallas_lint.server.views.code_lenses import code_lenses

    can = client_commands(ls.initial_settings)
    codec = ls.workspace.position_codec
    found = await ls.documents.on_thread(code_lenses, state, codec, can, trusted=ls.trusted)
    return ls.documents.lenses.with_those_before(state, found)
