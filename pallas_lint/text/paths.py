"""Paths that anyone may have written: checked, looked up and walked without an exception of the system.

`Path.exists` and its like raise OSError for a path that is too long or lies in a folder that cannot be searched, and
`os.walk` calls itself for every level below Python 3.12. A path that the system refuses leads to nothing here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_LENGTH = 4096  # bytes of a path that any system takes
_MAX_NAME_LENGTH = 255  # bytes of one name in it


def problem_of(text: str) -> str | None:
    """Why no path can be written like this, as a clause; None where one can."""
    if "\0" in text:
        return "no path has a NUL character in it"
    try:
        names = os.fsencode(text.replace("\\", "/")).split(b"/")
    except UnicodeEncodeError:
        return "it has a character that no path can have"
    if sum(map(len, names)) + len(names) > MAX_LENGTH or any(len(name) > _MAX_NAME_LENGTH for name in names):
        return "it is longer than a path can be"
    return None


def exists(path: str | Path) -> bool:
    """Whether something is there, behind a link too."""
    return os.path.exists(path)  # noqa: PTH110  Path.exists raises


def is_file(path: str | Path) -> bool:
    """Whether a regular file is there, behind a link too."""
    return os.path.isfile(path)  # noqa: PTH113  Path.is_file raises


def is_folder(path: str | Path) -> bool:
    """Whether a folder is there, behind a link too."""
    return os.path.isdir(path)  # noqa: PTH112  Path.is_dir raises


def names_in(folder: str | Path) -> list[str]:
    """What lies in a folder, sorted; nothing where it cannot be read."""
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208  no Path is needed, and it is many times faster
    except (OSError, ValueError):
        return []


def walk(folder: Path, enters: Callable[[str], bool]) -> Iterator[tuple[str, list[str]]]:
    """Each folder from `folder` down that `enters` takes by its name, and the sorted names of what else is in it.

    Links to folders are not followed, and what cannot be read is left out.
    """
    left = [str(folder)]
    while left:
        place = left.pop()
        try:
            with os.scandir(place) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            continue
        folders = {entry.name: entry.path for entry in entries if entry.is_dir(follow_symlinks=False)}
        yield place, [entry.name for entry in entries if entry.name not in folders]
        left += [folders[name] for name in reversed(folders) if enters(name)]


def shown_path(file: Path, cwd: Path) -> str:
    """`file` as the user reads it: relative to `cwd` unless far outside of it, with forward slashes."""
    path, folder = str(file), f"{cwd}{os.sep}"
    if path.startswith(folder):
        return path[len(folder) :].replace(os.sep, "/")
    try:
        text = str(file.absolute().relative_to(cwd))
    except ValueError:
        try:
            relative = os.path.relpath(file, cwd)
        except ValueError:  # another drive
            relative = str(file)
        text = relative if relative.count("..") <= 3 else str(file)
    return text.replace(os.sep, "/")
