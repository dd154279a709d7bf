"""The setting `extend`: the file that it names, and whether a settings file belongs to the project at hand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pallas_lint.config.bounds import bounds
from pallas_lint.config.options import OptionError
from pallas_lint.text import paths


def extended(named: str, extending: Sequence[Path]) -> Path:
    """The file that the last of the files `extending` extends. Raises OptionError."""
    try:
        other = os.path.realpath(extending[-1].parent / Path(named).expanduser())
    except RuntimeError as error:
        raise OptionError(f"there is no user of the name in {named}") from error
    if other in map(os.path.realpath, extending):
        raise OptionError(f"circular reference through {named}")
    if not paths.is_file(other):
        raise OptionError(f"there is no file {named}")
    return Path(other)


def is_in_project(file: Path, folder: Path) -> bool:
    """Whether a file, or the one that a link leads to, belongs to the project of a folder."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(bounds(folder)))
