"""Hovers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp
from pallas_lint.server.views import settings_help
from pallas_lint.server.workspace import settings_files
from pallas_lint.server.workspace.documents import Documents

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer


async def hover(ls: PallasServer, params: lsp.HoverParams) -> lsp.Hover | None:
    uri, codec = params.text_document.uri, ls.workspace.position_codec
    source = ls.documents.source(uri)
    if source is not None and settings_files.is_one(Documents.path(uri)):
        place = from_lsp(source, params.position, codec)
        text = settings_help.hover(Documents.path(uri), source, place.line, place.column)
        return lsp.Hover(contents=text) if text is not None else None
    state = await ls.documents.state(uri)
    if state is None:
        return None
    from pallas_lint.server.views import hover as view

    return view.hover(state, params.position, codec)
