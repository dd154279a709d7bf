"""What a client shows about the server itself: its state for a file, and the pages of rules."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

from pallas_lint import __version__
from pallas_lint.config.environment import InterpreterError, find_python
from pallas_lint.config.settings import SettingsError
from pallas_lint.registry import all_rules

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.server.workspace.folders import Folder


def status(folder: Folder, file: Path, probe_allowed: bool) -> dict[str, Any]:
    """By what a file is judged: versions, settings, targets; and the first thing that is wrong with the settings."""
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


def rule_page(code: str) -> dict[str, str] | None:
    """The page of a rule as Markdown, or None where there is no such rule."""
    entry = all_rules().get(code.upper())
    if entry is None:
        return None
    return {"title": f"{entry.code} {entry.name}", "markdown": entry.docs()}
