"""Code actions: fixes, ways to silence a finding, and `source.fixAll`."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.actions import code_actions, fixing

from pallas_lint.notebooks.notebook import Notebook

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

OPTIONS = lsp.CodeActionOptions(code_action_kinds=list(code_actions.KINDS))


async def code_action(ls: PallasServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    state = await ls.documents.state(params.text_document.uri)
    if state is None:
        return []
    request = code_actions.ActionRequest(
        state,
        ls.reporter.findings(state.source.path),
        params.range,
        [str(getattr(kind, "value", kind)) for kind in params.context.only] if params.context.only else None,
        params.context.diagnostics,
        ls.workspace.position_codec,
        ls.client_capabilities,
        ls.documents.text_of,
        ls.reporter.uri,
    )
    found = code_actions.quick_fixes(request) if request.wants_quick_fixes else []
    # On save, or from the menu of source actions: never in the lightbulb.
    if state.client.fix_all and request.only is not None and request.wants(code_actions.FIX_ALL):
        line = params.range.start.line + 1
        cell = state.source.cell_at(line).number if isinstance(state.source, Notebook) else None
        cancelled = threading.Event()
        project = ls.documents.project_apart()
        try:
            after = await ls.documents.on_thread(fixing.fixed, state, project, cell=cell, is_stale=cancelled.is_set)
        except asyncio.CancelledError:
            cancelled.set()  # it may take rounds; other requests need the thread
            raise
        found += code_actions.fix_all(state, after, request.codec)
    return found
