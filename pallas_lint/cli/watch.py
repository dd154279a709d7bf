"""`--watch`: lint again whenever a file changes."""

from __future__ import annotations

import contextlib
import copy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.cli import lint, terminal
from pallas_lint.cli.exit import OK
from pallas_lint.config.flags import UsageError
from pallas_lint.text import paths

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

_CLEAR = "\x1b[2J\x1b[3J\x1b[H"  # the screen, what was scrolled away, and back to the first line
_ENDINGS = (".py", ".ipynb", "pyproject.toml", "pallas-lint.toml", ".gitignore", ".lock", "requirements.txt")


def run(options: argparse.Namespace) -> int:
    """Lint, wait for a change, and lint again until interrupted. Raises UsageError."""
    try:
        import watchfiles
    except ModuleNotFoundError as error:
        if error.name != "watchfiles":
            raise
        raise UsageError("--watch needs watchfiles: pip install 'pallas-lint[watch]'") from error
    if options.paths == ["-"]:
        raise UsageError("--watch takes files and folders, not standard input")
    usual = watchfiles.DefaultFilter()

    def is_folder(path: str) -> bool:
        return paths.is_folder(path) and not Path(path).is_symlink()

    def counts(change: watchfiles.Change, path: str) -> bool:
        is_new_folder = change is watchfiles.Change.added and is_folder(path)
        return (is_new_folder or path.endswith(_ENDINGS)) and usual(change, path)

    def below(top: Path) -> Iterator[str]:
        """A folder and those in it. Watching recursively would follow links, out of the project and without end."""
        for folder, _ in paths.walk(top, lambda name: usual(watchfiles.Change.added, name)):
            yield folder

    while True:
        folders = {folder for top in _watched(options.paths or ["."]) for folder in below(top)}
        if (status := _round(options)) != OK:
            return status
        changes = watchfiles.watch(
            *folders,
            watch_filter=counts,
            debounce=200,
            raise_interrupt=False,
            recursive=False,
            ignore_permission_denied=True,
        )
        with contextlib.suppress(FileNotFoundError):  # a folder that has gone since it was listed
            for changed in changes:
                if any(is_folder(path) for _, path in changed):
                    break
                if (status := _round(options)) != OK:
                    return status
            else:
                return OK


def _watched(paths: Iterable[str]) -> set[Path]:
    """The folders to watch: those given, and those of files given, which an editor may replace. Raises UsageError."""
    places = {Path(path).absolute() for path in paths}
    missing = next((place for place in places if not place.exists()), None)
    if missing is not None:
        raise UsageError(f"{missing}: no such file or folder")
    return {place if place.is_dir() else place.parent for place in places}


def _round(options: argparse.Namespace) -> int:
    """One run; OK as long as its report can be written. Bad settings wait for the next change like a finding."""
    if sys.stdout.isatty():
        terminal.write([_CLEAR])
    try:
        lint.run(copy.copy(options))
    except UsageError as error:
        terminal.fail(str(error))
    terminal.print_message("watching for changes (Ctrl-C to stop)")
    return terminal.finish(OK)
