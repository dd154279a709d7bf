"""Lifecycle of a session: initialize, initialized, shutdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.features.configuration import reconfigure, take_settings
from pallas_lint.server.features.watched_files import watch

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pallas_lint.server.app import PallasServer


def initialize(ls: PallasServer, params: lsp.InitializeParams) -> None:
    root = ls.workspace.root_uri
    for uri in [folder.uri for folder in params.workspace_folders or ()] or ([root] if root else []):
        ls.folders.add(uri)
    ls.initial_settings = params.initialization_options
    document = params.capabilities.text_document
    ls.reporter.pulls = document is not None and document.diagnostic is not None
    take_settings(ls, ls.initial_settings, (ls.folders.rest, *ls.folders))
    ls.documents.ready.set()


async def initialized(ls: PallasServer, _: lsp.InitializedParams) -> None:
    ls.documents.warm_up()
    await reconfigure(ls, None)
    await watch(ls)
    ls.workspace_linter.request()


def shutdown(ls: PallasServer, _: object) -> None:
    ls.prober.shutdown()
    ls.recorder.shutdown()
    ls.workspace_linter.stop()
    ls.documents.shutdown()
