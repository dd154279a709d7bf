"""The files of a run: discovery, and what is known of the project that they are in."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.config.bounds import bounds, marked
from pallas_lint.config.layout import LAYOUT_FILES
from pallas_lint.config.patterns import Patterns
from pallas_lint.config.settings import SettingsError, SettingsFinder
from pallas_lint.finding import LintError
from pallas_lint.identity import ById
from pallas_lint.notebooks import MARKDOWN
from pallas_lint.records import define, field, frozen
from pallas_lint.text import files, paths
from pallas_lint.text.paths import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pallas_lint.checker.backend_inference import BackendEvidence, ProjectEvidence
    from pallas_lint.config.settings import Settings
    from pallas_lint.kernels.interpreter.modules import ModuleGraph, SyntaxCache
    from pallas_lint.known_calls.callers import Callers
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.run.project_calls import ProjectCalls
    from pallas_lint.text.source import Source

SUFFIXES = (".py", ".ipynb")
_PYTHON = (
    *SUFFIXES,
    ".pyi",
    ".pyw",
    *MARKDOWN,
)  # a file with another ending that is named on the command line is linted, with a note
_MAX_NAMED = 3  # files in a note
_MAX_PATTERNS = 20_000  # lines of a .gitignore
# A file without any of these words holds no kernel and launches none; it is not even decoded.
_WORDS = (b"pallas", b"jax_triton", b"input_output_aliases", b"operand_output_aliases")


def concerns_pallas(data: bytes) -> bool:
    """Whether a file with these bytes may hold or launch a kernel."""
    return any(word in data for word in _WORDS)


def is_in_project(file: Path, root: Path) -> bool:
    """Whether a file belongs to the project in the folder `root`, or to any other."""
    return file.is_relative_to(root) or marked(file.parent) is not None


def bounds_of(file: Path, cwd: Path) -> Path:
    """What writing a file that was named or found in a run must not leave: the run's project, else the file's own."""
    file, own = normal(cwd / file), bounds(cwd)
    return own if file.is_relative_to(own) else bounds(file.parent)


@frozen(eq=False)
class InputFile:
    """One file to lint. `shown` is its path as the user reads it."""

    path: Path
    shown: str
    settings: Settings


@define(slots=False, eq=False)
class Project:
    """What the analysis sees of the files on disk.

    `overlay` (absolute file -> text) goes before what is on disk.
    """

    cwd: Path = field(factory=Path.cwd)
    overlay: Mapping[Path, Source] = field(factory=dict)
    incremental: bool = False  # keep what was found in a file, for when it is judged again after an edit
    absolute_names: bool = False  # files are named by their whole paths, as in editors
    known_callers: Callable[[Path, tuple[str, ...]], Callers] | None = None  # gives those of earlier runs
    wait_for_callers: bool = True  # calls are found out before a verdict that they matter to, not afterwards

    @cached_property
    def _syntax(self) -> SyntaxCache:
        from pallas_lint.kernels.interpreter.modules import SyntaxCache

        return SyntaxCache(incremental=self.incremental)

    @cached_property
    def _evidence(self) -> ProjectEvidence:
        from pallas_lint.checker.backend_inference import ProjectEvidence

        return ProjectEvidence()

    def evidence(self, folder: Path) -> BackendEvidence:
        """The evidence of backends in the project of a folder."""
        return self._evidence.of(folder, self.overlay)

    def graph(self) -> ModuleGraph:
        """The modules of the project for one analysis; what has been parsed is shared with earlier ones."""
        from pallas_lint.kernels.interpreter.modules import ModuleGraph

        self._syntax.trim()
        return ModuleGraph(self.overlay, self._syntax, None if self.absolute_names else self.cwd)

    @cached_property
    def calls(self) -> ProjectCalls:
        """Known calls, from other files and records."""
        from pallas_lint.run.project_calls import ProjectCalls

        return ProjectCalls(self)

    def known_calls(self, file: Path, settings: Settings) -> tuple[KnownCall, ...]:
        """The calls of what a file defines: those that other files of its project make, and those on record."""
        return self.calls.of(file, settings)

    def forget(self, file: Path) -> None:
        """The file has changed on disk: what was read of it does not count any more."""
        self._syntax.forget(file)
        self._evidence.forget(file)
        if file.name in LAYOUT_FILES:
            self._syntax.layouts.forget()
        self.calls.forget(file)

    def release(self, file: Path) -> None:
        """The file will not be judged again soon: give back the memory that what was found out about it takes."""
        self.forget(file)
        self._syntax.release(file)

    def forget_requirements(self) -> None:
        """Files with a project's requirements may have changed."""
        self._evidence.forget_requirements()
        self._syntax.layouts.forget()
        self.calls.invalidate()

    def file(self, shown: str) -> Path:
        """The absolute file behind a path as shown, without `..` in it: files are known by their paths."""
        return normal(self.cwd / shown)


@define
class Discovery:
    """What the paths of the command line come to."""

    files: list[InputFile] = field(factory=list)
    errors: list[LintError] = field(factory=list)
    notes: list[str] = field(factory=list)


def discover(
    paths: Sequence[str | Path],
    finder: SettingsFinder,
    *,
    cwd: Path,
    exclude: Sequence[str] = (),
    force_exclude: bool = False,
) -> Discovery:
    """The files to lint, sorted as shown: those named are in unless `force_exclude`, folders are searched for the rest.

    `exclude` are patterns relative to `cwd`. Missing paths and folders with bad settings become errors.
    """
    found: dict[str, InputFile] = {}
    unlike: list[str] = []
    result = Discovery()
    walk = _Walk(finder, cwd, exclude, result)
    for given in paths:
        path = cwd / given
        try:
            is_folder = path.is_dir()
            exists = is_folder or path.exists()
            is_file = path.is_file()
        except (OSError, ValueError) as error:
            result.errors.append(LintError(str(given), f"cannot be read: {error}"))
            continue
        if not exists:
            result.errors.append(LintError(shown_path(path, cwd), "no such file or folder"))
        elif not is_folder and not is_file:
            # Reading a pipe or a device may never end.
            result.errors.append(LintError(shown_path(path, cwd), "neither a file nor a folder"))
        elif is_folder:
            before = len(found), len(result.errors)
            for identity, file in walk.folder(path):
                found.setdefault(identity, file)
            if (len(found), len(result.errors)) == before and not any(walk.folder(path)):
                result.notes.append(f"no Python files in {shown_path(path, cwd)}")
        else:
            named_file = walk.file(path, force_exclude=force_exclude)
            # One named twice, or named and in a folder, is linted once.
            if named_file is not None and found.setdefault(_identity(path), named_file) is named_file:
                unlike += [named_file.shown] if _is_unlike_python(path) else []
    result.files = sorted(found.values(), key=lambda file: file.shown)
    result.errors = list(dict.fromkeys(result.errors))
    if unlike:
        named = ", ".join(unlike[:_MAX_NAMED]) + (", …" if len(unlike) > _MAX_NAMED else "")
        result.notes.append(f"not Python by name or first line, but read as Python: {named}")
    return result


def _is_unlike_python(path: Path) -> bool:
    """Whether neither the name of a file nor its first line, as of a script, shows that it is Python."""
    if path.name.endswith(_PYTHON):
        return False
    try:
        first = files.read(path).partition(b"\n")[0]
    except OSError:
        return False  # reported when it is to be linted
    return not (first.startswith(b"#!") and b"python" in first)


def is_excluded(path: Path, top: Path, finder: SettingsFinder, *, exclude: Sequence[str]) -> bool:
    """Whether a search of the folder `top` would leave out `path` below it, .gitignore files aside.

    `exclude` are patterns relative to `top`. Raises SettingsError.
    """
    place, parts = top, path.relative_to(top).parts
    for depth, name in enumerate(parts, start=1):
        excludes = _excludes(finder.for_folder(place), exclude, top)
        place /= name
        if excludes.match(str(place), name, is_folder=depth < len(parts)):
            return True
    return False


def normal(path: Path) -> Path:
    """`path` without `..` and `.`, links kept."""
    return Path(os.path.normpath(path))


def _identity(path: Path) -> str:
    """What two names of one file have in common; only links cost a look at the disk."""
    return os.path.realpath(path) if path.is_symlink() else os.path.normpath(path)


class _Walk:
    """A search through folders, with their settings and ignore files."""

    def __init__(self, finder: SettingsFinder, cwd: Path, exclude: Sequence[str], result: Discovery) -> None:
        self.finder = finder
        self.cwd = cwd
        self.exclude = exclude
        self.result = result
        self._excludes: dict[ById, _Matching] = {}

    def settings(self, folder: Path) -> Settings | None:
        """The settings for `folder`, or None (and an error noted) where they are bad."""
        try:
            settings = self.finder.for_folder(normal(folder))
        except SettingsError as error:
            self.result.errors += [each.as_lint_error for each in error.all]
            return None
        if settings.jax.problem is not None:
            self.result.errors.append(settings.jax.problem)
        return settings

    def file(self, path: Path, *, force_exclude: bool) -> InputFile | None:
        """A file that was named; None where its settings are bad, or it is left out after all."""
        settings, file = self.settings(path.parent), normal(path)
        if settings is None or (force_exclude and self._leaves_out(file)):
            return None
        return InputFile(file, shown_path(file, self.cwd), settings)

    def _leaves_out(self, file: Path) -> bool:
        """Whether a search of the folder of the run would not come to `file`; bad settings on the way are noted."""
        if not file.is_relative_to(self.cwd):
            return False
        try:
            return is_excluded(file, self.cwd, self.finder, exclude=self.exclude)
        except SettingsError as error:
            self.result.errors += [each.as_lint_error for each in error.all]
            return True

    def folder(self, top: Path) -> Iterator[tuple[str, InputFile]]:
        """The files in a folder, each with its `_identity`."""
        top = normal(top)
        # Not by recursion: folders may lie in each other deeper than Python lets functions call each other.
        searches = [self._visit(str(top), self._ignores_above(top))]
        while searches:
            found = next(searches[-1], None)
            if found is None:
                searches.pop()
            elif isinstance(found, _Folder):
                searches.append(self._visit(found.path, found.ignores))
            else:
                yield found

    def _visit(self, folder: str, ignores: tuple[_IgnoreFile, ...]) -> Iterator[tuple[str, InputFile] | _Folder]:
        """The files in one folder, and the folders there that are to be searched."""
        settings = self.settings(Path(folder))
        if settings is None:
            return
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            shown = shown_path(Path(folder), self.cwd)
            self.result.errors.append(LintError(shown, f"cannot read the folder: {error.strerror or error}"))
            return
        excludes = self._excludes.get(ById(settings))
        if excludes is None:
            excludes = self._excludes[ById(settings)] = _excludes(settings, self.exclude, self.cwd)
        included = _Matching.of(settings.root, settings.include) if settings.include else None
        respected: tuple[_IgnoreFile, ...] = ()
        if settings.respect_gitignore:
            own = self._ignore_file(folder) if any(e.name == ".gitignore" for e in entries) else None
            respected = (*ignores, own) if own is not None else ignores
        for entry in entries:
            # Links to folders are not followed: they lead in circles, or to what is linted under its own
            # name.
            is_folder = entry.is_dir(follow_symlinks=False)
            wanted = entry.name.endswith(SUFFIXES) or (
                included is not None and entry.name.endswith(MARKDOWN) and included.match(entry.path, entry.name)
            )
            if not is_folder and not (wanted and _is_file(entry)):
                continue
            if excludes.match(entry.path, entry.name, is_folder=is_folder):
                continue
            if _ignored(respected, entry.path, is_folder=is_folder):
                continue
            if is_folder:
                yield _Folder(entry.path, respected if settings.respect_gitignore else ignores)
            else:
                path = Path(entry.path)
                identity = os.path.realpath(entry.path) if entry.is_symlink() else entry.path
                yield identity, InputFile(path, shown_path(path, self.cwd), settings)

    def _ignores_above(self, top: Path) -> tuple[_IgnoreFile, ...]:
        """The .gitignore files above `top` in its repository.

        None of them where they leave out `top` itself: it was named.
        """
        if paths.exists(top / ".git"):
            return ()
        repository = next((folder for folder in top.parents if paths.exists(folder / ".git")), None)
        if repository is None:
            return ()
        above: list[_IgnoreFile] = []
        place = repository
        for name in top.relative_to(repository).parts:
            file = self._ignore_file(str(place))
            if file is not None:
                above.append(file)
            place /= name
            if _ignored(above, str(place), is_folder=True):
                return ()
        return tuple(above)

    def _ignore_file(self, folder: str) -> _IgnoreFile | None:
        """The patterns of .gitignore in a folder; None (and an error noted) where the file cannot be used."""
        file = Path(folder, ".gitignore")
        try:
            return _IgnoreFile.read(file)
        except files.RefusedFile as error:
            self.result.errors.append(LintError(shown_path(file, self.cwd), f"cannot read the file: {error.strerror}"))
        except OSError:
            pass
        return None


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether there is a file behind `entry`; a link to itself leads to none."""
    try:
        return entry.is_file()
    except OSError:
        return False


@frozen
class _Matching:
    """What patterns match, of settings and of the command line."""

    names: frozenset[str]  # plain names: no pattern matching needed
    patterns: tuple[tuple[str, Patterns], ...]  # with the folder that they are relative to

    @classmethod
    def of(cls, base: Path, patterns: Iterable[str], *others: tuple[Path, Iterable[str]]) -> _Matching:
        """Patterns that are relative to a folder, and those relative to others."""
        given = [(base, tuple(patterns)), *((folder, tuple(more)) for folder, more in others)]
        names = frozenset(p for _, each in given for p in each if not set(p) & set("*?[]!/\\"))
        relative = []
        for folder, each in given:
            rest = [pattern for pattern in each if pattern not in names]
            if rest:
                relative.append((_prefix(str(folder)), Patterns(_as_git(pattern, folder) for pattern in rest)))
        return cls(names, tuple(relative))

    def match(self, path: str, name: str, *, is_folder: bool = False) -> bool:
        if name in self.names:
            return True
        return any(
            path.startswith(base) and patterns.verdict(_below(base, path), is_folder=is_folder)
            for base, patterns in self.patterns
        )


def _excludes(settings: Settings, extra: Iterable[str], cwd: Path) -> _Matching:
    """What settings and command line leave out."""
    return _Matching.of(settings.root, (*settings.exclude, *settings.extend_exclude), (cwd, extra))


def _prefix(folder: str) -> str:
    """What the paths of all that is in `folder` begin with."""
    return f"{folder.rstrip(os.sep)}{os.sep}"


def _below(prefix: str, path: str) -> str:
    return path[len(prefix) :].replace(os.sep, "/")


def _as_git(pattern: str, base: Path) -> str:
    """`./src/old`, `/abs/path/src/old` and `src\\old` as .gitignore patterns relative to `base`."""
    if os.sep == "\\":
        pattern = pattern.replace("\\", "/")
    if Path(pattern).is_absolute():
        try:
            return "/" + Path(pattern).relative_to(base).as_posix()
        except ValueError:
            return pattern
    return "/" + pattern.removeprefix("./") if pattern.startswith("./") else pattern


@frozen
class _IgnoreFile:
    """The patterns of one .gitignore file."""

    base: str  # its folder, with a separator at the end
    patterns: Patterns

    @classmethod
    def read(cls, file: Path) -> _IgnoreFile | None:
        """None for a file without patterns. Raises OSError."""
        text = files.read(file, files.MAX_SETTINGS_BYTES).decode("utf-8-sig", "surrogateescape")
        lines = text.replace("\r\n", "\n").split("\n")
        if len(lines) > _MAX_PATTERNS:
            raise files.RefusedFile(f"it has {len(lines):,} lines, at most {_MAX_PATTERNS:,} are read")
        patterns = Patterns(lines)
        return cls(_prefix(str(file.parent)), patterns) if patterns else None


@frozen
class _Folder:
    """A folder that is still to be searched, with the ignore files around it."""

    path: str
    ignores: tuple[_IgnoreFile, ...]


def _ignored(files: Sequence[_IgnoreFile], path: str, *, is_folder: bool) -> bool:
    """Whether the .gitignore files, of which the innermost comes last, leave `path` out."""
    for file in reversed(files):
        verdict = file.patterns.verdict(_below(file.base, path), is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False
