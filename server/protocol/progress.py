"""Work-done progress of long work, and its cancellation by the client."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.session import work_done_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pallas_lint.server.app import PallasServer


class Progress:
    """Work that is shown while the `async with` lasts; silent for clients that show none.

    A command shows it under the token that came with it, if one did.
    """

    def __init__(self, server: PallasServer, title: str, *, cancellable: bool = False) -> None:
        self._server = server
        self._title = title
        self._cancellable = cancellable
        self._token: lsp.ProgressToken | None = None
        self.cancelled = False

    async def __aenter__(self) -> Progress:
        window = self._server.client_capabilities.window
        progress = self._server.work_done_progress
        token = work_done_token.get()
        if token is None and window is not None and window.work_done_progress:
            token = f"pallas-lint-{uuid.uuid4()}"
            try:
                await progress.create_async(token)
            except Exception:  # the client refuses to show it: the work is done all the same
                token = None
        if token is not None:
            progress.begin(token, lsp.WorkDoneProgressBegin(self._title, cancellable=self._cancellable, percentage=0))
        self._token = token
        return self

    def report(self, done: int, of: int, what: str) -> None:
        if self._token is not None:
            report = lsp.WorkDoneProgressReport(message=f"{done} of {of} {what}", percentage=100 * done // max(of, 1))
            self._server.work_done_progress.report(self._token, report)

    def show(self, what: str) -> None:
        """Progress without a known amount of work."""
        if self._token is not None:
            report = lsp.WorkDoneProgressReport(message=what, cancellable=self._cancellable)
            self._server.work_done_progress.report(self._token, report)

    def on_cancel(self, end: Callable[[], None]) -> None:
        """Call `end` on the event loop when the user has had enough."""
        if self._token is None:
            return

        def cancelled(_: object) -> None:
            self.cancelled = True
            end()

        future = self._server.work_done_progress.tokens[self._token]
        future.add_done_callback(lambda done: cancelled(done) if done.cancelled() else None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            self._server.work_done_progress.end(self._token, lsp.WorkDoneProgressEnd())
            self._server.work_done_progress.tokens.pop(self._token, None)
