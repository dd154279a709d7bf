"""`pallas-lint clean`: what earlier runs kept is removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.cli import terminal
from pallas_lint.cli.exit import OK
from pallas_lint.config.flags import UsageError
from pallas_lint.config.settings import SettingsError, SettingsFinder
from pallas_lint.report.footer import count
from pallas_lint.run import cache, user_cache

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Remove the verdicts that are kept. Raises UsageError where that cannot be done."""
    cwd = Path.cwd()
    try:
        place = cache.folder(cwd, options.cache_dir, SettingsFinder(cwd=cwd).for_folder(cwd))
    except SettingsError as error:
        raise UsageError(str(error)) from error
    try:
        removed = user_cache.forget(place) if place is not None else 0
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror or error}") from error
    terminal.say(f"removed {count(removed, 'file')} from {place}" if removed else "there is nothing to remove")
    return OK
