"""`pallasLint/report`: what probes found of a document, as a page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pallas_lint.server.protocol.session import argument
from pallas_lint.server.views.probe_page import report

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.document_state import DocumentState


async def probe_report(ls: PallasServer, params: Any) -> dict[str, Any] | None:
    request = argument(params)
    document, position = argument(request.get("textDocument")), argument(request.get("position"))
    uri, line = document.get("uri"), position.get("line")
    state = await ls.documents.state(uri) if isinstance(uri, str) else None
    if state is None:
        return None
    at = line + 1 if isinstance(line, int) else None
    texts = {path: source for path in _paths(state) if (source := ls.documents.text_of(path)) is not None}
    return await asyncio.to_thread(
        report, state, ls.documents.path(state.uri), texts, at, bool(request.get("standalone"))
    )


def _paths(state: DocumentState) -> set[str]:
    return {finding.span.path for finding in state.probe_findings}
