"""`pallasLint.createConfig`: a settings file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.protocol.edits import workspace_edit
from pallas_lint.server.protocol.session import argument
from pallas_lint.server.workspace.folders import file_of
from pygls import uris

from pallas_lint.config.bounds import CONFIG_NAMES
from pallas_lint.config.settings import SettingsError, load
from pallas_lint.text import paths

if TYPE_CHECKING:
    from pallas_lint.server.app import PallasServer

_NEW = """\
# Settings of pallas-lint. `pallas-lint config` shows all of them, and where each comes from.

# What every kernel is judged for; without it each kernel's own backend is inferred.
# target = ["tpu:v5e"]

# Rules not to use: codes, prefixes, names.
ignore = []
"""


async def create_config(ls: PallasServer, *given: Any) -> dict[str, Any]:
    options = argument(given[0] if given else None)
    uri, folder = options.get("uri"), options.get("folder")
    if isinstance(uri, str):
        path = file_of(uri)
    elif isinstance(folder, str) and folder:
        path = Path(folder) if paths.problem_of(folder) is None else None
    else:
        path = next(iter(ls.folders), ls.folders.rest).path
    if path is None:
        return {"outcome": "failed", "uri": uri, "message": "the request names no folder on a disk"}
    return await _create(ls, path)


async def _create(ls: PallasServer, folder: Path) -> dict[str, Any]:
    """`pallasLint.createConfig`: a settings file to begin with, if the folder has none.

    Returns where it is, and what the user has to know.
    """
    for name in CONFIG_NAMES:
        file = folder / name
        try:
            there = load(file) is not None
        except SettingsError:
            there = True  # and broken: that is for the user to mend
        if there:
            return {"outcome": "exists", "uri": uris.from_fs_path(str(file)), "message": f"there is {name} already"}
    file = folder / CONFIG_NAMES[0]
    uri = uris.from_fs_path(str(file)) or ""
    start = lsp.Position(0, 0)
    edit = workspace_edit({uri: [lsp.TextEdit(lsp.Range(start, start), _NEW)]}, ls.client_capabilities, new=uri)
    workspace = ls.client_capabilities.workspace
    if edit is None or workspace is None or not workspace.apply_edit:
        message = f"this editor cannot make files for pallas-lint: write {file} yourself"
        ls.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Info, message=message))
        return {"outcome": "failed", "uri": uri, "message": message}
    applied = await ls.workspace_apply_edit_async(
        lsp.ApplyWorkspaceEditParams(edit=edit, label="Make pallas-lint.toml")
    )
    return {"outcome": "done" if applied.applied else "failed", "uri": uri, "message": applied.failure_reason or ""}
