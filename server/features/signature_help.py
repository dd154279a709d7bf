"""The parameters of a Pallas function while its call is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp
from pallas_lint.server.workspace.documents import Documents

from pallas_lint.config.settings import SettingsError

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

OPTIONS = lsp.SignatureHelpOptions(trigger_characters=["(", ","])


def signature_help(ls: PallasServer, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
    source = ls.documents.source(params.text_document.uri)
    if source is None or "pallas" not in source.text:
        return None
    path = Documents.path(params.text_document.uri)
    try:
        version = ls.folders.of(path).settings(path).jax.newest
    except SettingsError:  # which is reported elsewhere
        return None
    from pallas_lint.server.views.call_completion import signature

    return signature(source, from_lsp(source, params.position, ls.workspace.position_codec), version)
