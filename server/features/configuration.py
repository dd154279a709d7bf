"""The client's settings: requested for each folder where the client can, else as sent."""

from __future__ import annotations

import asyncio
import logging
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.workspace.client_settings import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.folders import Folder

logger = logging.getLogger(__name__)
SECTION = "pallasLint"
_MAX_WAIT = 2.0  # seconds in which a client has to send its settings


def changed_configuration(ls: PallasServer, params: lsp.DidChangeConfigurationParams) -> None:
    async def take() -> None:
        await reconfigure(ls, params.settings)
        ls.workspace_linter.request()

    # Not `async`, which would begin when the next message, maybe an edit, has been read.
    ls.documents.wait_for_settings()
    ls.configuring = asyncio.get_running_loop().create_task(take())


async def reconfigure(ls: PallasServer, sent: object) -> None:
    """Take the current settings: pulled folder by folder where the client can, else those it has `sent`."""
    workspace = ls.client_capabilities.workspace
    folders = [ls.folders.rest, *ls.folders]
    if workspace is None or not workspace.configuration:
        _take_each(ls, folders, [], sent)
        ls.documents.ready.set()
        return
    items = [lsp.ConfigurationItem(scope_uri=folder.uri, section=SECTION) for folder in folders]
    settings_request = asyncio.ensure_future(ls.workspace_configuration_async(lsp.ConfigurationParams(items=items)))
    ls.settings_request = settings_request
    ls.documents.wait_for_settings()
    try:
        await asyncio.wait([settings_request], timeout=_MAX_WAIT)
    finally:
        if settings_request is ls.settings_request:
            ls.documents.ready.set()

    def late(request: asyncio.Future[Any]) -> None:
        if request is ls.settings_request and not request.cancelled():
            _take_each(ls, folders, _answers(request), sent)
            ls.workspace_linter.request()

    answered = settings_request.done()
    _take_each(ls, folders, _answers(settings_request) if answered else [], sent)
    if not answered:
        logger.warning("the client has not sent its settings for %.0f s: judging goes on without", _MAX_WAIT)
        settings_request.add_done_callback(late)


def _answers(request: asyncio.Future[Any]) -> list[Any]:
    try:
        return list(request.result())
    except Exception as error:  # whatever the client answers: the settings that it sent are as good
        logger.warning("the client gave no settings: %s", error)
        return []


def _take_each(ls: PallasServer, folders: list[Folder], answers: list[Any], sent: object) -> None:
    for folder, answer in zip_longest(folders, answers[: len(folders)]):
        take_settings(ls, answer or sent or ls.initial_settings, [folder])


def take_settings(ls: PallasServer, given: object, folders: Iterable[Folder]) -> None:
    client = parse(given)
    ls.show_problems(client.problems)
    for folder in folders:
        if folder.configure(client):
            ls.documents.reload(folder.path if folder.uri is not None else None)
