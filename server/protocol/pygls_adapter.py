"""Everything that the server needs of pygls beyond its public interface.

No other module of the server names a private member of pygls; tests/server/test_pygls_adapter.py fails where a release
of pygls has renamed one or changed its parameters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument, Workspace

if TYPE_CHECKING:
    from lsprotocol import types as lsp
    from pygls.workspace import PositionCodec


class AdaptedProtocol(LanguageServerProtocol):
    """The protocol of one session."""

    @property
    def is_initialized(self) -> bool:
        """Whether the client has sent `initialize`."""
        return self._workspace is not None

    @property
    def is_shut_down(self) -> bool:
        """Whether the client has sent `shutdown`."""
        return self._shutdown

    def replace_workspace(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def send_error(self, request_id: object, code: int, message: str) -> None:
        """Answer a request with an error; its id may be of any type, as the client sent it."""
        self._send_data({"jsonrpc": self.VERSION, "id": request_id, "error": {"code": code, "message": message}})

    def fail_own_request(self, request_id: int | str, error: lsp.ResponseError) -> None:
        """End a request of the server's with an error, as if the client had answered so."""
        self._handle_response(request_id, None, error)

    def _handle_cancel_notification(self, msg_id: int | str) -> None:
        # pygls logs a warning for a request that has been answered meanwhile, which is nothing unusual.
        if msg_id in self._request_futures:
            super()._handle_cancel_notification(msg_id)


class AdaptedDocument(TextDocument):
    """An open document."""

    def replace_source(self, source: str) -> None:
        self._source = source


class AdaptedWorkspace(Workspace):
    """A workspace whose documents are of the class `document`."""

    document: type[TextDocument] = TextDocument

    def _create_text_document(
        self, doc_uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
    ) -> TextDocument:
        codec: PositionCodec = self.position_codec
        return self.document(doc_uri, source, version, language_id, position_codec=codec)
