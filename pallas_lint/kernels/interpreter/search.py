"""In which file of the project the module of a dotted name stands."""

from __future__ import annotations

import os
import sys
from itertools import islice
from typing import TYPE_CHECKING

from pallas_lint.config.layout import Base
from pallas_lint.records import define, field
from pallas_lint.text import paths

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from pallas_lint.config.layout import Layouts

_HIGHEST = 12  # folders above a file that it may import from


@define(eq=False)
class Search:
    """The search for one analysis, during which no file comes or goes.

    Most names that are looked up are those of other packages: of these each first word costs a look at the disk.
    """

    overlay: Collection[Path]  # files that have their texts from elsewhere: they need not be on disk
    read: Collection[Path]  # files that were looked at
    layouts: Layouts
    told_by: set[Path]  # what the answers rest on
    _put: list[Path] = field(factory=list)
    _around: dict[Path, tuple[Base, ...]] = field(factory=dict)
    _homes: dict[tuple[str, Path], tuple[Base, ...]] = field(factory=dict)

    def put(self, file: Path) -> None:
        """There is a file whose text is at hand."""
        self._put.append(file)
        self._homes.clear()

    def file_of(self, dotted: str, folder: Path) -> Path | None:
        """The file that a name, absolute or with leading dots, means in a file of a folder."""
        if dotted.startswith("."):
            rest = dotted.lstrip(".")
            for _ in range(len(dotted) - len(rest) - 1):
                folder = folder.parent
            return self._below(folder, rest.split(".") if rest else [])
        for home in self._homes_of(dotted.split(".", 1)[0], folder):
            parts = home.below(dotted)
            file = None if parts is None else self._below(home.folder, parts)
            if file is not None:
                return file
        return None

    def _below(self, folder: Path, parts: list[str]) -> Path | None:
        place = folder.joinpath(*parts)
        for file in ([place.with_suffix(".py")] if parts else []) + [place / "__init__.py"]:
            if file in self.read or file in self.overlay or paths.is_file(file):
                return file
        return None

    def _homes_of(self, first: str, folder: Path) -> tuple[Base, ...]:
        """Where names that begin with a word may lie, for a file in a folder.

        The folder and those above come first, up to the repository's, then what the project's layout tells. Python's
        own modules go before what is installed.
        """
        known = self._homes.get((first, folder))
        if known is None:
            around = self._around.get(folder)
            if around is None:
                around = self._around[folder] = tuple(_around(folder))
            homes = [base for base in around if self._has(base, first)]
            if first not in sys.stdlib_module_names:
                layout = self.layouts.of(folder)
                self.told_by.update(layout.told_by)
                homes += [base for base in layout.bases if base not in around and self._has(base, first)]
            known = self._homes[first, folder] = tuple(homes)
        return known

    def _has(self, base: Base, first: str) -> bool:
        if base.package:
            return base.package.split(".", 1)[0] == first
        place = f"{base.folder}{os.sep}{first}"
        if paths.is_folder(place):
            return True
        if not base.packages_only and paths.is_file(f"{place}.py"):
            return True
        return any(str(file).startswith(place) for file in (*self.overlay, *self._put))


def _around(folder: Path) -> Iterator[Base]:
    for place in islice((folder, *folder.parents), _HIGHEST):
        yield Base(place)
        if paths.exists(place / ".git"):
            break
