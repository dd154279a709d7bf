"""Import resolution: the file of a project's module, by its dotted name."""

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

_MAX_PARENTS = 12  # folders above a file that it may import from


@define(eq=False)
class Search:
    """Import resolution for one analysis, during which no file is added or removed.

    Most names that are looked up belong to other packages: each first word of these costs a look at the disk.
    """

    overlay: Collection[Path]  # files whose text is not read from disk: they need not exist
    read: Collection[Path]  # files that were read
    layouts: Layouts
    dependencies: set[Path]  # files and folders that the results depend on
    _put: list[Path] = field(factory=list)
    _enclosing: dict[Path, tuple[Base, ...]] = field(factory=dict)
    _homes: dict[tuple[str, Path], tuple[Base, ...]] = field(factory=dict)

    def put(self, file: Path) -> None:
        """Add a file whose text is not read from disk."""
        self._put.append(file)
        self._homes.clear()

    def file_of(self, dotted: str, folder: Path) -> Path | None:
        """The file of a module name, absolute or with leading dots, for an importer in a folder."""
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
        """The folders in which names that begin with a word may be found, for a file in a folder.

        The folder and its parents come first, up to the repository's, then those of the project's layout. Python's own
        modules precede installed packages.
        """
        known = self._homes.get((first, folder))
        if known is None:
            enclosing = self._enclosing.get(folder)
            if enclosing is None:
                enclosing = self._enclosing[folder] = tuple(_enclosing(folder))
            homes = [base for base in enclosing if self._has(base, first)]
            if first not in sys.stdlib_module_names:
                layout = self.layouts.of(folder)
                self.dependencies.update(layout.declared_in)
                homes += [base for base in layout.bases if base not in enclosing and self._has(base, first)]
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


def _enclosing(folder: Path) -> Iterator[Base]:
    for place in islice((folder, *folder.parents), _MAX_PARENTS):
        yield Base(place)
        if paths.exists(place / ".git"):
            break
