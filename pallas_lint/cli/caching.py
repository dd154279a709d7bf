"""The cache folder of a command: the user names it, a project's settings do not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pallas_lint.config.flags import UsageError
from pallas_lint.records import frozen
from pallas_lint.report.style import visible
from pallas_lint.run.cache_folder import VARIABLE, CacheFolder, ForeignFolder, cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pallas_lint.config.settings import Settings


@frozen
class Choice:
    """The cache folder, None for none, and the notes on it that the user should read."""

    folder: CacheFolder | None
    notes: tuple[str, ...] = ()


def choose(cwd: Path, option: str | None, named: Settings | None = None, others: Iterable[Settings] = ()) -> Choice:
    """The cache folder that `--cache-dir`, else the environment, else the settings file `named` by the user gives.

    `others` are settings that were found: a cache folder that they name is not used. Raises UsageError where the folder
    that the user named is not ours.
    """
    path: Path | None = None
    if given := option or os.environ.get(VARIABLE):
        path = cwd / given
    elif named is not None and named.cache_dir is not None:
        path = named.root / named.cache_dir
    ignored = {s.origins.get("cache-dir") for s in others if path is None and s.cache_dir is not None}
    notes = [
        f"{visible(str(origin))}: cache-dir is not used: a project does not choose where results are kept "
        f"(--cache-dir and {VARIABLE} do)"
        for origin in sorted(filter(None, ignored))
    ]
    try:
        folder = cache_folder(cwd, path)
    except ForeignFolder as error:
        if path is not None:
            raise UsageError(str(error.strerror)) from error
        return Choice(None, (*notes, f"{error.strerror}; --no-cache goes without"))
    if folder is None and path is not None:
        notes.append("no results are kept: there is no folder of the user's own for the key that signs them")
    return Choice(folder, tuple(notes))
