"""Import layout of a project: the folders that absolute imports start from, as its files declare.

A file also imports from its own folder and those around it, whatever a project declares; what is read here is the rest,
of a `src` folder, packages that are renamed, and the other projects of the repository. Nothing of it is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from pallas_lint.records import define, field, frozen
from pallas_lint.text import files, paths

LAYOUT_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "pytest.ini", "tox.ini")
_MARKS = ("pyproject.toml", "setup.cfg", "setup.py")  # of a folder that is a project of its own
_MAX_FOLDERS = 12  # folders above a file that are searched
_MAX_PROJECTS = 64  # of a repository that are read
# What is there belongs to other projects, or is a program that runs in its own folder.
_NOT_SEARCHED = frozenset("node_modules site-packages venv build dist third_party vendor external examples".split())
# Strings, compiled when first used. A pyproject.toml without any of these words declares nothing, and is not parsed.
_TELLING = r"package|source|module-root|workspace|dev-mode-dirs|pythonpath|\bpath[ \t]*="
_SETUP_PACKAGE_DIR = r"package_dir\s*=\s*\{([^{}]*)\}"
_SETUP_PAIR = r"""["']([\w.]*)["']\s*:\s*["']([^"'\n]*)["']"""
_SETUP_FIND = r"""find(?:_namespace)?_packages\(\s*(?:where\s*=\s*)?["']([^"'\n]+)["']"""


@frozen
class Base:
    """A folder that imports start from: the module `a.b` is `a/b.py` in it, or that of `package.a.b`."""

    folder: Path
    package: str = ""
    packages_only: bool = False  # it may not be installed: a lone module does not count

    def below(self, dotted: str) -> list[str] | None:
        """The way from the folder to the module of a name; None where it is not of the package."""
        if not self.package:
            return dotted.split(".")
        if dotted == self.package:
            return []
        return dotted[len(self.package) + 1 :].split(".") if dotted.startswith(f"{self.package}.") else None


@frozen
class Layout:
    """What code of a project imports from besides the folders around it, the first that has a module counts."""

    bases: tuple[Base, ...]
    declared_in: tuple[Path, ...]  # the files that declare it


@define(eq=False)
class Layouts:
    """A cache of the layouts of projects: each is read once, until it is forgotten."""

    _of_folders: dict[Path, Layout] = field(factory=dict)
    _projects: dict[Path, _Project] = field(factory=dict)

    def forget(self) -> None:
        """Files that declare layouts may have changed."""
        self._of_folders.clear()
        self._projects.clear()

    def of(self, folder: Path) -> Layout:
        """The layout of the project that a folder belongs to."""
        known = self._of_folders.get(folder)
        if known is None:
            around, top = self._around(folder)
            # Of folders of one project only the first is searched in full.
            key = around[0] if around else folder
            known = self._of_folders.get(key) if key != folder else None
            if known is None:
                known = self._of_folders[key] = self._layout(around, top)
            self._of_folders[folder] = known
        return known

    def _around(self, folder: Path) -> tuple[list[Path], Path | None]:
        """The projects around a folder, the innermost first, and the folder that none may leave."""
        found: list[Path] = []
        for place in islice((folder, *folder.parents), _MAX_FOLDERS):
            if paths.exists(place / ".git"):
                return [*found, place], place
            if any(paths.exists(place / mark) for mark in _MARKS):
                found.append(place)
        # Without a repository, what is further out is another project unless it declares that this is a part of it.
        kept = found[:1]
        for place in found[1:]:
            if not set(self._project(place, place).parts).isdisjoint(kept):
                kept.append(place)
        return kept, kept[-1] if kept else None

    def _layout(self, around: list[Path], top: Path | None) -> Layout:
        if top is None:
            return Layout((), ())
        projects = {place: self._project(place, top) for place in around}
        bases = [base for project in projects.values() for base in (*project.on_path, *project.bases)]
        for part in [part for project in projects.values() for part in project.parts]:
            if part not in projects and len(projects) < _MAX_PROJECTS:
                projects[part] = self._project(part, top)
                bases += projects[part].bases
        for place in (place for project in around for place in _inner_projects(project)):
            if place not in projects and len(projects) < _MAX_PROJECTS:
                projects[place] = self._project(place, top)
                bases += (Base(base.folder, base.package, packages_only=True) for base in projects[place].bases)
        declared_in = (file for project in projects.values() for file in project.declared_in)
        return Layout(tuple(dict.fromkeys(bases)), tuple(dict.fromkeys(declared_in)))

    def _project(self, folder: Path, top: Path) -> _Project:
        known = self._projects.get(folder)
        if known is None:
            known = self._projects[folder] = _Reader(folder, os.path.realpath(top)).project()
        return known


@frozen
class _Project:
    """The layout that the files of one project declare."""

    bases: tuple[Base, ...]  # of what it installs
    on_path: tuple[Base, ...]  # what is on the path of its tests besides
    parts: tuple[Path, ...]  # other projects that are installed along with it
    declared_in: tuple[Path, ...]


def _inner_projects(folder: Path) -> Iterator[Path]:
    """The projects in a folder, and in the folders there, that need no declaration: `python/`, `packages/a/`."""
    for outer in _folders(folder):
        if any(paths.exists(outer / mark) for mark in _MARKS):
            yield outer
        else:
            yield from (inner for inner in _folders(outer) if any(paths.exists(inner / mark) for mark in _MARKS))


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as scan:
            names = sorted(entry.name for entry in scan if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(".") and name not in _NOT_SEARCHED]


@define
class _Reader:
    """Reads the files of the project in a folder, and follows no path that leads out of `top`."""

    folder: Path
    top: str  # without links
    bases: dict[Base, None] = field(factory=dict)
    on_path: dict[Base, None] = field(factory=dict)
    parts: dict[Path, None] = field(factory=dict)
    declared_in: list[Path] = field(factory=list)

    def project(self) -> _Project:
        self._pyproject(_toml(self._read("pyproject.toml")))
        for name in ("setup.cfg", "pytest.ini", "tox.ini"):
            self._ini(name)
        self._setup_py(self._read("setup.py"))
        if not self.bases:
            self._base("src" if _is_source_folder(self.folder / "src") else ".")
        return _Project(tuple(self.bases), tuple(self.on_path), tuple(self.parts), tuple(self.declared_in))

    def _pyproject(self, document: dict[str, Any]) -> None:
        tool = _table(document, "tool")
        setuptools, hatch, poetry = _table(tool, "setuptools"), _table(tool, "hatch", "build"), _table(tool, "poetry")
        for package, place in _table(setuptools, "package-dir").items():
            self._base(place, package)
        if find := _table(setuptools, "packages", "find"):
            for where in _strings(find.get("where")) or ["."]:
                self._base(where)
        for table in (hatch, _table(hatch, "targets", "wheel"), _table(tool, "scikit-build", "wheel")):
            self._packages(table)
        for entry in _list(poetry.get("packages")):
            if isinstance(entry, dict):
                self._base(entry.get("from", "."))
        for table in (_table(tool, "pdm", "build"), _table(tool, "pdm")):
            self._base(table.get("package-dir"))
        if uv_build := _table(tool, "uv", "build-backend"):
            self._base(uv_build.get("module-root", "src"))
        self._base(_table(tool, "maturin").get("python-source"))
        for table in (_table(tool, "pytest", "ini_options"), _table(tool, "pytest")):
            self._path(table.get("pythonpath"))
        self._workspace(_table(tool, "uv", "workspace"))
        for needed in (*_table(tool, "uv", "sources").values(), *_table(poetry, "dependencies").values()):
            for source in _list(needed) or [needed]:
                place = self._place(source.get("path")) if isinstance(source, dict) else None
                if place is not None:
                    self.parts[place] = None

    def _packages(self, table: dict[str, Any]) -> None:
        """Packages by their folders, as hatch and scikit-build list them, and those that get another name."""
        for package in _strings(table.get("packages")):
            self._base(str(PurePosixPath(package).parent))
        for package, place in _table(table, "packages").items():
            self._base(place, package)
        for place in (*_strings(table.get("sources")), *_strings(table.get("dev-mode-dirs"))):
            self._base(place)
        for place, package in _table(table, "sources").items():
            self._base(place, package.replace("/", ".") if isinstance(package, str) else "")

    def _workspace(self, table: dict[str, Any]) -> None:
        left_out = {place for pattern in _strings(table.get("exclude")) for place in self._matching(pattern)}
        for pattern in _strings(table.get("members")):
            self.parts.update((place, None) for place in self._matching(pattern) if place not in left_out)

    def _matching(self, pattern: str) -> Iterator[Path]:
        """The folders that a pattern of a workspace names; of patterns that search whole trees, none."""
        parts = PurePosixPath(pattern).parts
        if "**" in parts or sum(bool(set(part) & set("*?[")) for part in parts) > 2:
            return
        places = [Path()]
        for part in parts:
            if set(part) & set("*?["):
                inner = [place / each.name for place in places for each in _folders(self.folder / place)]
                places = [place for place in inner if fnmatchcase(place.name, part)]
            else:
                places = [place / part for place in places]
        yield from islice(filter(None, (self._place(str(place)) for place in places)), _MAX_PROJECTS)

    def _ini(self, name: str) -> None:
        text = self._read(name)
        if not text:
            return
        import configparser

        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(text)
        except configparser.Error:
            return
        for line in parser.get("options", "package_dir", fallback="").splitlines():
            package, _, place = line.partition("=")
            self._base(place.strip() or None, package.strip())
        for where in parser.get("options.packages.find", "where", fallback="").split():
            self._base(where)
        for section in ("pytest", "tool:pytest"):
            self._path(parser.get(section, "pythonpath", fallback=None))

    def _setup_py(self, text: str) -> None:
        for table in re.findall(_SETUP_PACKAGE_DIR, text):
            for package, place in re.findall(_SETUP_PAIR, table):
                self._base(place or ".", package)
        for where in re.findall(_SETUP_FIND, text):
            self._base(where)

    def _path(self, value: object) -> None:
        for name in value.split() if isinstance(value, str) else _strings(value):
            if (place := self._place(name)) is not None:
                self.on_path[Base(place)] = None

    def _base(self, value: object, package: str = "") -> None:
        place = self._place(value)
        if place is not None:
            self.bases[Base(place, package)] = None

    def _place(self, value: object) -> Path | None:
        """A folder that is named relative to the project's."""
        if not isinstance(value, str) or "\0" in value:
            return None
        place = os.path.normpath(self.folder / value)
        real = os.path.realpath(place)
        inside = real == self.top or real.startswith(f"{self.top}{os.sep}")
        return Path(place) if inside and paths.is_folder(real) else None

    def _read(self, name: str) -> str:
        file = self.folder / name
        try:
            text = files.read(file, files.MAX_SETTINGS_BYTES).decode("utf-8", "replace")
        except OSError:
            text = ""
        if text or name == LAYOUT_FILES[0]:
            self.declared_in.append(file)
        return text


def _is_source_folder(folder: Path) -> bool:
    """Whether packages are in an undeclared folder `src`, which is not a package itself."""
    return paths.is_folder(folder) and not paths.exists(folder / "__init__.py")


def _toml(text: str) -> dict[str, Any]:
    if re.search(_TELLING, text) is None:
        return {}
    from pallas_lint.text import toml

    try:
        return toml.loads(text)
    except (ValueError, RecursionError):  # broken, or too much for Python
        return {}


def _table(table: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        value = table.get(key)
        if not isinstance(value, dict):
            return {}
        table = value
    return table


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _strings(value: object) -> list[str]:
    return [item for item in _list(value) if isinstance(item, str)]
