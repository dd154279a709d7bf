"""Bounds of a project: its root folder, and whether a file belongs to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.text import paths

if TYPE_CHECKING:
    from pathlib import Path

CONFIG_NAMES = ("pallas-lint.toml", "pyproject.toml")


def project_root(cwd: Path) -> Path:
    """Where settings belong: the nearest folder upward with settings or a repository, else `cwd`."""
    return marked(cwd) or cwd


def marked(place: Path) -> Path | None:
    """The nearest folder upward with settings or a repository."""
    marks = (*CONFIG_NAMES, ".git")
    around = (place, *place.parents)
    return next((folder for folder in around if any(paths.exists(folder / mark) for mark in marks)), None)


def bounds(folder: Path) -> Path:
    """What of the disk is the project's, as far as writing goes: the repository around `folder`.

    Without one it is the nearest folder upward with settings, else `folder` itself.
    """
    repository = next((place for place in (folder, *folder.parents) if paths.exists(place / ".git")), None)
    return repository or project_root(folder)
