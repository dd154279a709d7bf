"""Completion in suppression comments and in settings files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp
from pallas_lint.server.views import settings_help
from pallas_lint.server.views.rule_completion import completions
from pallas_lint.server.workspace import settings_files
from pallas_lint.server.workspace.documents import Documents

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

OPTIONS = lsp.CompletionOptions(trigger_characters=["=", ",", ":", '"', "["])


def completion(ls: PallasServer, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
    uri, codec = params.text_document.uri, ls.workspace.position_codec
    source = ls.documents.source(uri)
    if source is None or params.position.line >= source.line_count:
        return []
    cursor = from_lsp(source, params.position, codec)
    if settings_files.is_one(Documents.path(uri)):
        return settings_help.completions(Documents.path(uri), source, cursor, codec)
    return completions(source, cursor, codec)
