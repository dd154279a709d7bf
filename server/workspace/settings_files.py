"""Settings files: which files are settings files, and the problems in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.config.bounds import CONFIG_NAMES
from pallas_lint.config.settings import SettingsError, loads

if TYPE_CHECKING:
    from pathlib import Path


def is_one(file: Path) -> bool:
    return file.name in CONFIG_NAMES


def problem(file: Path, text: str) -> SettingsError | None:
    """What is wrong with the settings in a file."""
    try:
        loads(text.encode("utf-8", "surrogatepass"), file, str(file))
    except SettingsError as error:
        return error
    return None
