"""A session with a client that makes mistakes: every request is answered, none of them ends the server.

Against pygls: a request that cannot be read is answered with an error rather than never, so is one before `initialize`
or after `shutdown`; `params` may be left out; objects inside messages are never taken for messages; a change of a
document that is not open is passed over. Commands can be cancelled: pygls would answer that they are, and let them
run on.
"""

from __future__ import annotations

import inspect
import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.protocol.pygls_adapter import AdaptedProtocol
from pallas_lint.server.protocol.texts import Texts
from pallas_lint.server.workspace.client_settings import client_commands
from pygls.exceptions import JsonRpcException
from pygls.protocol import lsp_method

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from pallas_lint.server.app import PallasServer

logger = logging.getLogger(__name__)

# The client's token for the progress of the current command.
work_done_token: ContextVar[lsp.ProgressToken | None] = ContextVar("work_done_token", default=None)

# By number: lsprotocol's enumeration has other values for some of the names.
_NOT_INITIALIZED = -32002
_INVALID_REQUEST = -32600
_INVALID_PARAMS = -32602
_COMMAND = lsp.WORKSPACE_EXECUTE_COMMAND


class ServerProtocol(AdaptedProtocol):
    """`started` is called with the client's process id, where the client sends one."""

    started: Callable[[int], None] | None = None

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Called by the reader for every object of a message, inner ones first: nothing is done with them yet."""
        return data

    def handle_message(self, message: Any) -> None:
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            logger.warning("not a message of JSON-RPC 2.0: %.200r", message)
            return
        method = message.get("method")
        if method is None:
            self._take_response(message)
        elif "id" in message:
            self._take_request(message, method)
        elif method == lsp.EXIT or (self.is_initialized and not self.is_shut_down):
            self._take_notification(message, method)
        else:
            logger.warning("passed over: notification %.200r outside of a session", method)

    def _take_request(self, message: dict[str, Any], method: object) -> None:
        number = message["id"]
        if isinstance(number, bool) or not isinstance(number, int | str):
            self._refuse(number, _INVALID_REQUEST, "the id of a request is a number or a string")
        elif not isinstance(method, str):
            self._refuse(number, _INVALID_REQUEST, "the method of a request is a string")
        elif self.is_shut_down:
            self._refuse(number, _INVALID_REQUEST, "the server has been shut down")
        elif not self.is_initialized and method != lsp.INITIALIZE:
            self._refuse(number, _NOT_INITIALIZED, "the server has not been initialized")
        elif self.is_initialized and method == lsp.INITIALIZE:
            self._refuse(number, _INVALID_REQUEST, "the server has been initialized before")
        else:
            try:
                structured = super().structure_message({"params": None, **message})
            except JsonRpcException as error:
                self._refuse(number, _INVALID_PARAMS, f"the parameters of {method} cannot be read: {_reason(error)}")
            else:
                problem = self._problem_of_command(structured.params) if method == _COMMAND else None
                if problem is not None:
                    self._refuse(number, _INVALID_PARAMS, problem)
                elif hasattr(structured, "id"):
                    super().handle_message(structured)
                else:
                    self._refuse(number, _INVALID_REQUEST, f"{method} is a notification")

    def _problem_of_command(self, params: lsp.ExecuteCommandParams) -> str | None:
        """Why a command cannot be run with the client's arguments; None where it can."""
        if params.command not in self.fm.commands:
            return f"there is no command {params.command!r}"
        return f"{params.command} takes one argument" if len(params.arguments or ()) > 1 else None

    def _take_notification(self, message: dict[str, Any], method: object) -> None:
        try:
            structured = super().structure_message({"params": None, **message})
        except (JsonRpcException, TypeError) as error:  # TypeError: the method cannot be looked up
            logger.warning("passed over: notification %.200r that cannot be read: %s", method, _reason(error))
        else:
            super().handle_message(structured)

    def _take_response(self, message: dict[str, Any]) -> None:
        """An answer that cannot be read is an error of its request."""
        number = message.get("id")
        if not isinstance(number, int | str):
            logger.warning("passed over: answer to no request: %.200r", message)
            return
        if "error" not in message:
            message = {"result": None, **message}
        try:
            structured = super().structure_message(message)
        except JsonRpcException as error:
            problem = lsp.ResponseError(_INVALID_REQUEST, f"the answer cannot be read: {_reason(error)}")
            self.fail_own_request(number, problem)
        else:
            super().handle_message(structured)

    def _refuse(self, number: object, code: int, message: str) -> None:
        logger.warning("request refused: %s", message)
        self.send_error(number, code, message)

    # -- what pygls does on its own ---------------------------------------------------------------------------------

    @lsp_method(lsp.INITIALIZE)
    def lsp_initialize(self, params: lsp.InitializeParams) -> Generator[Any, Any, lsp.InitializeResult]:
        result = yield from super().lsp_initialize(params)
        made = self.workspace
        folders = list(made.folders.values())
        self.replace_workspace(
            Texts(made.root_uri, workspace_folders=folders, position_encoding=made.position_encoding)
        )
        if client_commands(params.initialization_options):
            # VS Code has one extension answer for the whole hierarchy, for all tokens of a file, for a name and for a
            # signature: that of all Python functions is worth more.
            result.capabilities.call_hierarchy_provider = None
            result.capabilities.semantic_tokens_provider = None
            result.capabilities.document_highlight_provider = None
            result.capabilities.rename_provider = None
            result.capabilities.signature_help_provider = None
        if params.process_id is not None and self.started is not None:
            self.started(params.process_id)
        return result

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: lsp.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        uri = params.text_document.uri
        if self.workspace.get_text_document(uri) not in self.workspace.text_documents.values():
            logger.warning("passed over: change of %s, which is not open", uri)
            return
        yield from super().lsp_text_document__did_change(params)

    @lsp_method(lsp.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]  # pygls awaits what is a coroutine
        self, params: lsp.ExecuteCommandParams
    ) -> Any:
        """Runs the command in the task of its request, so that `$/cancelRequest` ends both."""
        work_done_token.set(params.work_done_token)
        result = self.fm.commands[params.command](*(params.arguments or ()))
        return await result if inspect.isawaitable(result) else result


def argument(given: object) -> Mapping[str, Any]:
    """The one object that a command or request of ours takes; empty where a client sent something else."""
    if isinstance(given, dict):
        return given
    # pygls makes named tuples of the objects in requests that it does not know.
    fields = getattr(given, "_asdict", None)
    return fields() if fields is not None else {}


def refresh_views(ls: PallasServer) -> None:
    """Have the client refresh what it shows in the code, where it can."""
    workspace = ls.client_capabilities.workspace
    if workspace is None:
        return
    for can, refresh in (
        (workspace.code_lens, ls.workspace_code_lens_refresh),
        (workspace.inlay_hint, ls.workspace_inlay_hint_refresh),
        (workspace.semantic_tokens, ls.workspace_semantic_tokens_refresh),
    ):
        if can is not None and can.refresh_support:
            refresh(None)


def _reason(error: Exception) -> str:
    """The innermost thing that is wrong, in one line."""
    cause: BaseException = error.__cause__ or error
    while nested := getattr(cause, "exceptions", None):
        cause = nested[0]
    return f"{type(cause).__name__}: {cause}".splitlines()[0]
