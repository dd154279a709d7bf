"""Inlay hints behind parameters and launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pallas_lint.server.app import PallasServer


async def inlay_hint(ls: PallasServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return []
    from pallas_lint.server.views.inlay_hints import inlay_hints

    visible = range(params.range.start.line, params.range.end.line + 1)
    lines = range(visible.start + 1, visible.stop + 1)
    return ls.documents.hints.with_those_before(state, inlay_hints(state, ls.workspace.position_codec, lines), visible)
