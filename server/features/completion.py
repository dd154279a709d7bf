"""Completion in comments, in calls of Pallas functions, and in settings files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp
from pallas_lint.server.views import rule_completion, settings_help
from pallas_lint.server.workspace import settings_files
from pallas_lint.server.workspace.documents import Documents

from pallas_lint.config.settings import SettingsError

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

OPTIONS = lsp.CompletionOptions(trigger_characters=["=", ",", ":", '"', "'", "[", "(", "."])


async def completion(ls: PallasServer, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
    """What can stand at the cursor; in code it is read from the text alone, which is half written."""
    uri, codec = params.text_document.uri, ls.workspace.position_codec
    source = ls.documents.source(uri)
    if source is None or params.position.line >= source.line_count:
        return []
    path, cursor = Documents.path(uri), from_lsp(source, params.position, codec)
    if settings_files.is_one(path):
        return settings_help.completions(path, source, cursor, codec)
    if rule_completion.is_in_directive(source, cursor):
        await ls.documents.state(uri)  # which has the findings of the line
        return rule_completion.completions(source, cursor, codec, ls.reporter.findings(source.path))
    if "pallas" not in source.text:
        return []
    try:
        version = ls.folders.of(path).settings(path).jax.newest
    except SettingsError:  # which is reported elsewhere
        return []
    from pallas_lint.server.views import call_completion

    return call_completion.completions(source, cursor, version, codec, snippets=_takes_snippets(ls.client_capabilities))


def _takes_snippets(client: lsp.ClientCapabilities) -> bool:
    completion = client.text_document.completion if client.text_document is not None else None
    item = completion.completion_item if completion is not None else None
    return item is not None and item.snippet_support is True
