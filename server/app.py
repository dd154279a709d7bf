"""The server object: state and server-initiated messages."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.probing.prober import Prober
from pallas_lint.server.probing.recorder import RecordingRunner
from pallas_lint.server.probing.stored_results import Probed
from pallas_lint.server.protocol.session import ServerProtocol, refresh_views
from pallas_lint.server.reporting.diagnostics import make_converter
from pallas_lint.server.reporting.reporter import Reporter
from pallas_lint.server.reporting.workspace_linter import WorkspaceLinter
from pallas_lint.server.views.markdown import message_text
from pallas_lint.server.workspace import notebooks
from pallas_lint.server.workspace.documents import Documents
from pallas_lint.server.workspace.folders import Folders
from pygls.exceptions import FeatureNotificationError
from pygls.lsp.server import LanguageServer

from pallas_lint import __version__

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from pygls.server import ServerErrors

logger = logging.getLogger(__name__)


class PallasServer(LanguageServer):
    """One server for one client."""

    protocol: ServerProtocol

    def __init__(self, *, allow_probe: bool = False, allow_run: bool = False, trusted: bool = True) -> None:
        super().__init__(
            "pallas-lint",
            __version__,
            text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental,
            notebook_document_sync=notebooks.SYNC,
            protocol_cls=ServerProtocol,
            converter_factory=make_converter,
        )
        # Set where the process is started; no setting changes it.
        self.probe_allowed, self.run_allowed = allow_probe, allow_probe and allow_run
        self.trusted = trusted
        self.folders = Folders()
        self.reporter = Reporter(self)
        called = partial(refresh_views, self)
        self.documents = Documents(self.folders, self.reporter.document_checked, self.failed, called, Probed(trusted))
        self.notebooks = notebooks.Notebooks(self)
        self.workspace_linter = WorkspaceLinter(self)
        self.prober = Prober()
        self.recorder = RecordingRunner()
        self.initial_settings: object = None  # those that came with `initialize`
        self.settings_request: asyncio.Future[Any] | None = None  # the newest request for settings
        self.configuring: asyncio.Task[None] | None = None  # takes the answer
        self._crashes: set[str] = set()
        self._shown_problems: set[str] = set()

    def window_show_message(self, params: lsp.ShowMessageParams) -> None:
        super().window_show_message(lsp.ShowMessageParams(params.type, message_text(params.message)))

    async def window_show_message_request_async(
        self, params: lsp.ShowMessageRequestParams
    ) -> lsp.MessageActionItem | None:
        request = lsp.ShowMessageRequestParams(params.type, message_text(params.message), params.actions)
        return await super().window_show_message_request_async(request)

    def failed(self, details: str) -> None:
        """A crash of the engine: shown once, the details go to the log."""
        last = details.strip().splitlines()[-1]
        if last not in self._crashes:
            self._crashes.add(last)
            self.window_log_message(lsp.LogMessageParams(type=lsp.MessageType.Error, message=details))
            message = f"pallas-lint failed on a file: {last}"
            self.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Error, message=message))

    def report_server_error(self, error: Exception, source: ServerErrors) -> None:
        """A request that fails gets an error; other failures are shown like a crash of the engine."""
        if issubclass(source, FeatureNotificationError):
            self.failed(f"{type(error).__name__}: {error}")
        else:
            logger.error("%s: %s", type(error).__name__, error)

    def show_problems(self, problems: Iterable[str]) -> None:
        """Show problems of the settings, each once."""
        for problem in problems:
            if problem not in self._shown_problems:
                self._shown_problems.add(problem)
                message = f"pallas-lint: {problem}"
                self.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Warning, message=message))
