"""Folders that the client adds to the workspace and takes out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.features.configuration import reconfigure

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pallas_lint.server.app import PallasServer


async def changed_folders(ls: PallasServer, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
    for left in params.event.removed:
        folder = ls.folders.remove(left.uri)
        if folder is not None:
            ls.reporter.workspace_linted(folder.path, ())
            ls.documents.reload(folder.path)
    added = [folder for joined in params.event.added if (folder := ls.folders.add(joined.uri)) is not None]
    await reconfigure(ls, None)
    for folder in added:
        ls.documents.reload(folder.path)
    ls.workspace_linter.request()
