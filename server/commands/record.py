"""`pallasLint.recordShapes`: runs the project's tests on request and records the shapes of their kernel calls."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.commands.probe import NOT_ALLOWED
from pallas_lint.server.features.watched_files import take_changes
from pallas_lint.server.probing.prober import Failed, answer_of
from pallas_lint.server.probing.recorder import Tests
from pallas_lint.server.protocol.progress import Progress
from pallas_lint.server.protocol.session import argument, refresh_views
from pallas_lint.server.workspace.client_settings import client_commands

from pallas_lint.config.bounds import project_root
from pallas_lint.config.environment import InterpreterError, find_python
from pallas_lint.config.settings import SettingsError
from pallas_lint.probe.recorded import RecordError, Recording

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.server.app import PallasServer


async def record(ls: PallasServer, given: object = None) -> dict[str, Any]:
    """`pallasLint.recordShapes`: what came of it, of the project in which the file `uri` is."""
    try:
        answer = await _answered(ls, argument(given).get("uri"))
    except Failed as error:
        answer = answer_of("failed", str(error))
    if not client_commands(ls.initial_settings):
        kind = lsp.MessageType.Warning if answer["outcome"] in ("failed", "not-allowed") else lsp.MessageType.Info
        ls.window_show_message(lsp.ShowMessageParams(type=kind, message=f"pallas-lint: {answer['message']}"))
    return answer


async def _answered(ls: PallasServer, uri: object) -> dict[str, Any]:
    if not ls.probe_allowed:
        return answer_of("not-allowed", NOT_ALLOWED)
    if not isinstance(uri, str):
        raise Failed("the request is not understood: it has `uri`, of a file of the project")
    file = ls.documents.path(uri)
    tests = await asyncio.to_thread(_tests_in, ls, file)
    cancelled = threading.Event()
    async with Progress(ls, "Recording shapes from tests", cancellable=True) as progress:
        progress.on_cancel(cancelled.set)
        try:
            return await ls.recorder.run(tests, progress.show, cancelled)
        finally:
            take_changes(ls, {tests.recording.file})
            refresh_views(ls)


def _tests_in(ls: PallasServer, file: Path) -> Tests:
    """The tests of the project in which a file is. Raises Failed."""
    folder = ls.folders.of(file)
    try:
        settings = folder.settings(file)
        python = find_python(file.parent, folder.client.interpreter or settings.probe.get("python"))
    except (InterpreterError, SettingsError) as error:
        raise Failed(str(error)) from error
    try:
        recording = Recording.of(file.parent, settings, replace=False, values=False, stub=False)
    except RecordError as error:
        raise Failed(str(error)) from error
    return Tests(python, project_root(file.parent), recording)
