"""Texts of documents as the client has them: incremental changes at the client's positions.

Lines end as in LSP, at `\\n`, `\\r\\n` and `\\r`. `str.splitlines`, by which pygls goes, also ends them at form
feeds, U+2028 and others, and each change after such a character would land in a wrong line.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp
from pallas_lint.server.protocol.pygls_adapter import AdaptedDocument, AdaptedWorkspace

from pallas_lint.text.source import Source

logger = logging.getLogger(__name__)


class Text(AdaptedDocument):
    """One open document."""

    @property
    def lines(self) -> Sequence[str]:
        source = Source(self.path, self.source)
        return tuple(source.lines(number, number) for number in range(1, source.line_count + 1))

    def apply_change(self, change: lsp.TextDocumentContentChangeEvent) -> None:
        if not isinstance(change, lsp.TextDocumentContentChangePartial):
            self.replace_source(change.text)
            return
        source = Source(self.path, self.source)
        places = (from_lsp(source, place, self.position_codec) for place in (change.range.start, change.range.end))
        start, end = sorted(source.offset(place) for place in places)
        self.replace_source(source.text[:start] + change.text + source.text[end:])


class Texts(AdaptedWorkspace):
    """The client's workspace, with such documents."""

    document = Text

    def update_notebook_document(self, params: lsp.DidChangeNotebookDocumentParams) -> None:
        if self.get_notebook_document(notebook_uri=params.notebook_document.uri) is None:
            logger.warning("passed over: change of %s, which is not open", params.notebook_document.uri)
            return
        super().update_notebook_document(params)

    def update_text_document(
        self, text_doc: lsp.VersionedTextDocumentIdentifier, change: lsp.TextDocumentContentChangeEvent
    ) -> None:
        if self.get_text_document(text_doc.uri) not in self.text_documents.values():
            logger.warning("passed over: change of %s, which is not open", text_doc.uri)
            return
        super().update_text_document(text_doc, change)
