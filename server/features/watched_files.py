"""Files that change on disk: what rests on them is judged again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.features.configuration import SECTION
from pallas_lint.server.workspace import settings_files
from pallas_lint.server.workspace.folders import file_of

from pallas_lint.config.bounds import CONFIG_NAMES
from pallas_lint.config.environment import ENVIRONMENT_FOLDERS, LOCK_FILES, has_evidence
from pallas_lint.config.layout import LAYOUT_FILES

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.server.app import PallasServer

logger = logging.getLogger(__name__)
SHAPES = "*shapes*.toml"  # files of recorded calls, under whatever name settings have for them
WATCHED = (
    "**/*.{py,ipynb}",
    f"**/{SHAPES}",
    f"**/{{{','.join((*CONFIG_NAMES, *LOCK_FILES, 'setup.cfg', 'pytest.ini', 'tox.ini', '.gitignore'))}}}",
    "**/requirements*.txt",
    # What an installation of jax or libtpu leaves behind, and nothing else of an environment.
    *(f"**/{name}/**/{{jax,libtpu}}*.dist-info/METADATA" for name in ENVIRONMENT_FOLDERS),
)


def changed_files(ls: PallasServer, params: lsp.DidChangeWatchedFilesParams) -> None:
    files = (file_of(change.uri) for change in params.changes if not ls.documents.source(change.uri))
    take_changes(ls, {file for file in files if file is not None})


def take_changes(ls: PallasServer, files: set[Path]) -> None:
    """Judge again what rests on files that have changed on disk, and nothing else."""
    code = {file for file in files if file.suffix in (".py", ".ipynb")}
    ls.documents.changed_on_disk(code)
    for file in files - code:
        if file.match(SHAPES):
            ls.documents.changed_on_disk({file})
            ls.documents.reload(file.parent)
            continue
        below = _below(file)
        if below is None:
            continue
        ls.folders.forget(below)
        ls.documents.reload(below)
        if settings_files.is_one(file):
            ls.reporter.settings_changed(file.as_posix())
    if files:
        ls.workspace_linter.request(again=True)


def _below(file: Path) -> Path | None:
    """The folder for whose files it matters that `file` has changed; None where it does not matter."""
    for place in file.parents:
        if place.name in ENVIRONMENT_FOLDERS:
            return place.parent
    is_of_settings = settings_files.is_one(file) or has_evidence([file.name]) or file.name in LAYOUT_FILES
    return file.parent if is_of_settings else None


async def watch(ls: PallasServer) -> None:
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
        except Exception as error:  # a client that refuses what it declared: nothing is watched, all else works
            logger.warning("the client registers nothing: %s", error)
