"""Where the server learns how it is meant to work: the client's settings, its folders, and files that change."""

from __future__ import annotations

import asyncio
import logging
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.workspace import settings_files
from pallas_lint.server.workspace.client_settings import parse
from pallas_lint.server.workspace.folders import file_of

from pallas_lint.config.environment import ENVIRONMENT_FOLDERS, LOCK_FILES, has_evidence
from pallas_lint.config.settings import CONFIG_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.folders import Folder

logger = logging.getLogger(__name__)
SECTION = "pallasLint"
_PATIENCE = 2.0  # seconds in which a client has to say what its settings are
WATCHED = (
    "**/*.{py,ipynb}",
    f"**/{{{','.join((*CONFIG_NAMES, *LOCK_FILES, 'setup.cfg', '.gitignore'))}}}",
    "**/requirements*.txt",
    # What an installation of jax leaves behind, and nothing else of an environment.
    *(f"**/{name}/**/jax*.dist-info/METADATA" for name in ENVIRONMENT_FOLDERS),
)


def register(server: PallasServer) -> None:
    """Answer what a client says about settings, folders and files."""

    @server.feature(lsp.INITIALIZE)
    def initialize(ls: PallasServer, params: lsp.InitializeParams) -> None:
        root = ls.workspace.root_uri
        for uri in [folder.uri for folder in params.workspace_folders or ()] or ([root] if root else []):
            ls.folders.add(uri)
        ls.initial_settings = params.initialization_options
        document = params.capabilities.text_document
        ls.reporter.pulls = document is not None and document.diagnostic is not None
        _take(ls, ls.initial_settings, (ls.folders.rest, *ls.folders))
        ls.documents.ready.set()

    @server.feature(lsp.INITIALIZED)
    async def initialized(ls: PallasServer, _: lsp.InitializedParams) -> None:
        ls.documents.warm_up()
        await reconfigure(ls, None)
        await _watch(ls)
        ls.sweeper.request()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def changed_configuration(ls: PallasServer, params: lsp.DidChangeConfigurationParams) -> None:
        async def take() -> None:
            await reconfigure(ls, params.settings)
            ls.sweeper.request()

        # Not `async`, which would begin when the next message, maybe an edit, has been read.
        ls.documents.wait_for_settings()
        ls.configuring = asyncio.get_running_loop().create_task(take())

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def changed_folders(ls: PallasServer, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        for left in params.event.removed:
            folder = ls.folders.remove(left.uri)
            if folder is not None:
                ls.reporter.swept(folder.path, ())
                ls.documents.reload(folder.path)
        added = [folder for joined in params.event.added if (folder := ls.folders.add(joined.uri)) is not None]
        await reconfigure(ls, None)
        for folder in added:
            ls.documents.reload(folder.path)
        ls.sweeper.request()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def changed_files(ls: PallasServer, params: lsp.DidChangeWatchedFilesParams) -> None:
        files = (file_of(change.uri) for change in params.changes if not ls.documents.source(change.uri))
        take_changes(ls, {file for file in files if file is not None})


def take_changes(ls: PallasServer, files: set[Path]) -> None:
    """Judge again what rests on files that have changed on disk, and nothing else."""
    code = {file for file in files if file.suffix in (".py", ".ipynb")}
    ls.documents.changed_on_disk(code)
    for file in files - code:
        below = _below(file)
        if below is None:
            continue
        ls.folders.forget(below)
        ls.documents.reload(below)
        if settings_files.is_one(file):
            ls.reporter.settings_changed(file.as_posix())
    if files:
        ls.sweeper.request(again=True)


def _below(file: Path) -> Path | None:
    """The folder for whose files it matters that `file` has changed; None where it does not matter."""
    for place in file.parents:
        if place.name in ENVIRONMENT_FOLDERS:
            return place.parent
    return file.parent if settings_files.is_one(file) or has_evidence([file.name]) else None


async def reconfigure(ls: PallasServer, sent: object) -> None:
    """Take the settings that hold now: asked for folder by folder where the client can, else those it has `sent`."""
    workspace = ls.client_capabilities.workspace
    folders = [ls.folders.rest, *ls.folders]
    if workspace is None or not workspace.configuration:
        _take_each(ls, folders, [], sent)
        ls.documents.ready.set()
        return
    items = [lsp.ConfigurationItem(scope_uri=folder.uri, section=SECTION) for folder in folders]
    asking = asyncio.ensure_future(ls.workspace_configuration_async(lsp.ConfigurationParams(items=items)))
    ls.asking = asking
    ls.documents.wait_for_settings()
    try:
        await asyncio.wait([asking], timeout=_PATIENCE)
    finally:
        if asking is ls.asking:
            ls.documents.ready.set()

    def late(asked: asyncio.Future[Any]) -> None:
        if asked is ls.asking and not asked.cancelled():
            _take_each(ls, folders, _answers(asked), sent)
            ls.sweeper.request()

    answered = asking.done()
    _take_each(ls, folders, _answers(asking) if answered else [], sent)
    if not answered:
        logger.warning("the client has not said for %.0f s what its settings are: judging goes on without", _PATIENCE)
        asking.add_done_callback(late)


def _answers(asked: asyncio.Future[Any]) -> list[Any]:
    try:
        return list(asked.result())
    except Exception as error:  # whatever the client answers: the settings that it sent are as good
        logger.warning("the client gave no settings: %s", error)
        return []


def _take_each(ls: PallasServer, folders: list[Folder], answers: list[Any], sent: object) -> None:
    for folder, answer in zip_longest(folders, answers[: len(folders)]):
        _take(ls, answer or sent or ls.initial_settings, [folder])


def _take(ls: PallasServer, given: object, folders: Iterable[Folder]) -> None:
    client = parse(given)
    ls.tell(client.problems)
    for folder in folders:
        if folder.configure(client):
            ls.documents.reload(folder.path if folder.uri is not None else None)


async def _watch(ls: PallasServer) -> None:
    """Have the client watch what verdicts rest on besides the open documents."""
    workspace = ls.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace is not None else None
    configuring = workspace.did_change_configuration if workspace is not None else None
    registrations = []
    if watching is not None and watching.dynamic_registration:
        watchers = [lsp.FileSystemWatcher(glob_pattern=pattern) for pattern in WATCHED]
        options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers=watchers)
        registrations.append(lsp.Registration("pallas-lint-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options))
    if configuring is not None and configuring.dynamic_registration:
        section = lsp.DidChangeConfigurationRegistrationOptions(section=SECTION)
        registrations.append(lsp.Registration("pallas-lint-settings", lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
    if registrations:
        try:
            await ls.client_register_capability_async(lsp.RegistrationParams(registrations=registrations))
        except Exception as error:  # a client that refuses what it said it can: nothing is watched, all else works
            logger.warning("the client registers nothing: %s", error)
