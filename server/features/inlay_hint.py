"""What is shown behind parameters and launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pallas_lint.server.app import PallasServer


async def inlay_hint(ls: PallasServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    judged = await ls.documents.judged(params.text_document.uri)
    if judged is None:
        return []
    from pallas_lint.server.views.inlay_hints import inlay_hints

    return inlay_hints(judged, params.range, ls.workspace.position_codec)
