"""`pallasLint/status`: the targets, versions and settings that apply to a file."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from pallas_lint.server.protocol.session import argument
from pallas_lint.server.workspace.documents import Documents

from pallas_lint import __version__
from pallas_lint.config.environment import InterpreterError, find_python
from pallas_lint.config.settings import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.server.app import PallasServer
    from pallas_lint.server.workspace.folders import Folder


async def status(ls: PallasServer, params: Any) -> dict[str, Any]:
    await ls.documents.ready.wait()  # not by settings that are about to be others
    uri = argument(params).get("uri")
    first = next(iter(ls.folders), ls.folders.rest)
    file = Documents.path(uri) if uri else first.path / "untitled.py"
    folder = ls.folders.of(file)
    return await ls.documents.on_thread(_status, folder, file, ls.probe_allowed)


def _status(folder: Folder, file: Path, probe_allowed: bool) -> dict[str, Any]:
    """What a file is checked for: versions, settings, targets; and the first problem of the settings."""
    problem = next(iter(folder.client.problems), None)
    interpreter = None
    try:
        interpreter = find_python(file.parent, folder.client.interpreter)
    except InterpreterError as error:
        problem = problem or str(error)
    known: dict[str, Any] = {"jax": None, "settings": None, "targets": [], "rules": 0}
    try:
        settings = folder.settings(file)
    except SettingsError as error:
        problem = str(error)
    else:
        known = {
            "jax": {"version": settings.jax.text, "origin": settings.jax.source},
            "settings": str(settings.config_file) if settings.config_file else None,
            "targets": [str(target) for target in settings.target],
            "rules": len(settings.enabled),
        }
    return {
        "version": __version__,
        "python": platform.python_version(),
        **known,
        "probe": {"allowed": probe_allowed, "interpreter": interpreter},
        "problem": problem,
    }
