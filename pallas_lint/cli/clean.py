"""`pallas-lint clean`: removes the caches of earlier runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.cli import caching, terminal
from pallas_lint.cli.exit import OK
from pallas_lint.config.flags import UsageError
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Remove the results that are kept. Raises UsageError where that cannot be done, or the folder is not ours."""
    choice = caching.choose(Path.cwd(), options.cache_dir)
    try:
        removed = choice.folder.clear() if choice.folder is not None else 0
    except OSError as error:
        raise UsageError(error.strerror or str(error)) from error
    for note in choice.notes:
        terminal.print_message(note)
    terminal.print_message(
        f"removed {count_of(removed, 'file')} from {choice.folder.path}"
        if choice.folder is not None and removed
        else "there is nothing to remove"
    )
    return OK
