"""Where what earlier runs found is kept: in the user's own folder for caches, never in a project's.

A repository brings along what it likes. What lies in it need not be ours, and its links lead anywhere; so nothing that
is found in it is believed, and nothing is kept in it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from pathlib import Path

from pallas_lint.run.project import bounds
from pallas_lint.text import files

_NAME = "pallas-lint"
_DAY = 86_400.0
_DAYS_KEPT = 90  # since it was written


def folder(project: Path) -> Path | None:
    """Where what is found out about the code in a folder is kept; it need not exist yet.

    None where there is no place that only this user writes to: without a home, in another user's, or where it would lie
    in the project itself.
    """
    caches = _caches()
    if caches is None:
        return None
    place = caches / _NAME
    in_project = _real(place).is_relative_to(_real(bounds(project)))
    return place if not in_project and _is_own(place) else None


def _caches() -> Path | None:
    """The folder for caches that this system gives its user."""
    told = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if told.is_absolute():  # the standard has others passed over
        return told
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    # A home that does not exist is not to be made: sandboxes name one so that nothing is kept.
    known = home.is_absolute() and home.is_dir()
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") if known else None


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_own(place: Path) -> bool:
    """Whether a folder is this user's and nobody else writes to it; of one to be made, whether it would be."""
    user = os.geteuid() if hasattr(os, "geteuid") else None
    try:
        status = place.lstat()
    except FileNotFoundError:
        # Not in the home of somebody else, as root with the environment of a user would.
        around = next(each for each in place.parents if each.exists())
        return user is None or around.stat().st_uid in (user, 0)
    except OSError:
        return False
    own = user is None or (status.st_uid == user and not status.st_mode & 0o022)
    return stat.S_ISDIR(status.st_mode) and own


def keep(file: Path, data: bytes) -> None:
    """Have a file below `folder()` hold `data`. Raises OSError."""
    _make(file.parent)
    files.write(file, data, file.parent, lasting=False)


def _make(place: Path) -> None:
    # One by one: `parents=True` would make all but the last one with the permissions of any folder.
    if not place.is_dir():
        _make(place.parent)
        place.mkdir(0o700, exist_ok=True)


def forget(place: Path) -> int:
    """Remove what was kept below a folder, and nothing else that may lie there; how many files. Raises OSError."""
    removed = 0
    for each in place.glob("*/*.json"):
        if not each.is_symlink() and each.is_file():
            each.unlink()
            removed += 1
    return removed


def forget_old(place: Path) -> None:
    """Once a day: remove what was kept long ago below a folder, of files that are gone or never change."""
    mark, now = place / "cleaned", time.time()
    with contextlib.suppress(OSError):
        if mark.exists() and mark.stat().st_mtime > now - _DAY:
            return
        keep(mark, b"")
        for each in place.rglob("*"):
            with contextlib.suppress(OSError):
                if each.is_file() and each.stat().st_mtime < now - _DAYS_KEPT * _DAY:
                    each.unlink()
