"""Models of kernels in Promela, in files of a folder that the user names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.finding import LintError
from pallas_lint.probe.interleaving.promela import FIRST_LINE
from pallas_lint.text import files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pallas_lint.probe.results import ProbeResult

_MAX_NAME_LENGTH = 80  # characters of a kernel's name in that of its file


def write(folder: Path, results: Iterable[ProbeResult]) -> list[LintError]:
    """Write the model of each launch that has one to a file of its own; returns what could not be written."""
    launches = [(at, launch) for result in results for at, launch in enumerate(result.launches)]
    errors: list[LintError] = []
    names: set[str] = set()
    for at, launch in launches:
        if launch.model is None:
            continue
        name = _name(launch.kernel, at, names)
        names.add(name.lower())  # some systems' files differ by more than case
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder.resolve() / name
            if not _is_free(file):
                raise files.RefusedFile("there is another file of that name")
            files.write(file, launch.model.encode("utf-8", "backslashreplace"), file.parent)
        except OSError as error:
            errors.append(LintError(str(folder / name), f"the model cannot be written: {error.strerror or error}"))
    return errors


def _name(kernel: str, at: int, taken: set[str]) -> str:
    """A name for a file that means no other folder on any system, whatever the kernel is called."""
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", kernel)[:_MAX_NAME_LENGTH] or "kernel"
    while f"{stem}-{at}.pml".lower() in taken:
        at += 1
    return f"{stem}-{at}.pml"


def _is_free(file: Path) -> bool:
    """Whether nothing is there, or a model that an earlier run wrote. Raises OSError."""
    try:
        return files.read(file).startswith(FIRST_LINE.encode())
    except FileNotFoundError:
        return not file.is_symlink()
