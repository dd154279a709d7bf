"""The versions of jax and libtpu of a project, read from its files: nothing is run and nothing is imported from it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pallas_lint.compat import ranges
from pallas_lint.records import evolve, frozen
from pallas_lint.text import files, paths
from pallas_lint.text.paths import names_in

ENVIRONMENT_FOLDERS = (".venv", "venv")
LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
REQUIREMENT_FILES = ("pyproject.toml", "setup.cfg")
_PROJECT_FILES = (*REQUIREMENT_FILES, "setup.py", *LOCK_FILES)  # a folder with one of them is a project of its own
# Strings, compiled when first used: a run seldom needs more than one of them.
_DIST_INFO = r"(?i)(jax|jaxlib|libtpu)-([0-9][^-]*)\.(?:dist-info|egg-info)$"
# `[[package]]` tables of uv, poetry and pdm, `[[packages]]` of PEP 751: a lock file of thousands of packages
# costs hundreds of milliseconds to parse as TOML (and `packaging.pylock` needs packaging 26), and only a few lines of
# it matter. One that names jax in other words is parsed.
_NAMED = r"""(?m)^[ \t]*name[ \t]*=[ \t]*["'](?:jax|jaxlib)["']"""
_LOCKED = r"(?m)^\[\[packages?\]\]\s*\nname\s*=\s*\"(jax|jaxlib|libtpu)\"\s*\nversion\s*=\s*\"([^\"]+)\""
_MAX_REQUIREMENT_LENGTH, _MAX_REQUIREMENTS = 500, 100  # of jax in a file: each bound is held against all versions
_REQUIREMENT_LINE = r"(?i)\s*(jax(?:lib)?|libtpu)\b(?![-_.\w])([^#\n]*)"


class InterpreterError(ValueError):
    """`--python` names nothing that exists."""


class UnreadableError(Exception):
    """A file that should have the jax version cannot be read: a pipe, a device, or far too large."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message


@frozen
class Evidence:
    """The jax version of one source: one version, or ranges of which any may hold."""

    specs: tuple[str, ...]  # one version if `exact`, else PEP 440 specifiers
    exact: bool
    source: str
    note: str | None = None  # what the reader must know: two places contradict each other
    libtpu: str | None = None  # the one version of it that the same place names
    file: Path | None = None  # of the project, that has it

    @property
    def text(self) -> str:
        return " or ".join(self.specs) or "any version"


def find_jax(folder: Path, python: str | None, *, isolated: bool) -> Evidence | None:
    """The best evidence for code in `folder`, or None.

    Raises InterpreterError for a `python` that is not there, UnreadableError for a file that is nothing to read.

    Order: the interpreter named, the active environment, the nearest `.venv` or `venv`, lock file,
    requirements, and last the environment that this very process runs in. How far upward is searched: `_upward`.
    """
    if python is not None:
        prefix = interpreter_prefix(python)
        found = _installed(_site_packages(prefix))
        if found:
            return found.evidence(f"from {python}")
    if isolated:
        return None
    folders = _upward(folder)
    return _in_active_environment() or _in_folders(folders) or _in_own_environment()


def requirement_texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and text of the files with the packages that code in `folder` needs: requirements, then lock files.

    Those of the nearest folder upward that has some.
    """
    for place in _upward(folder):
        names = names_in(place)
        requirements = [n for n in names if n in (*REQUIREMENT_FILES, "setup.py") or _is_requirements(n)]
        found = [name for name in (*requirements, *LOCK_FILES) if name in names]
        for name in found:
            try:
                text = _read(place / name)
            except UnreadableError:
                continue  # reported by `find_jax`
            yield name, text
        if found:
            return


def _is_requirements(name: str) -> bool:
    return name.startswith("requirements") and name.endswith(".txt")


def has_evidence(names: Iterable[str]) -> bool:
    """Whether a folder with these entries may know of another jax than its parent does."""
    return any(
        name == ".git"  # where the search upward ends
        or name in ENVIRONMENT_FOLDERS
        or name in _PROJECT_FILES
        or _is_requirements(name)
        for name in names
    )


def interpreter_prefix(python: str) -> Path:
    """The environment folder of an interpreter (or of an environment folder itself).

    Raises InterpreterError.
    """
    path = _expanded(python)
    if not paths.exists(path):
        import shutil

        found = shutil.which(python) if os.sep not in python else None
        if found is None:
            raise InterpreterError(f"--python: no interpreter '{python}'")
        path = Path(found)
    if paths.is_folder(path):
        return path
    # Not resolved: the interpreter of a virtual environment is a link to one outside of it.
    parent = path.absolute().parent
    return parent.parent if parent.name.lower() in ("bin", "scripts") else parent


def _expanded(python: str) -> Path:
    """An interpreter's path with the user's folder in the place of `~`. Raises InterpreterError."""
    try:
        return Path(python).expanduser()
    except RuntimeError as error:
        raise InterpreterError(f"--python: no interpreter '{python}'") from error


def _upward(folder: Path) -> list[Path]:
    """The folders that may define the jax version of `folder`, the nearest first: up to the root of its repository.

    Without one, up to the nearest folder that is a project by its files, else that lists requirements: an
    environment above those is another project's. Where nothing is a project, any folder above may have the environment.
    """
    places = [folder, *folder.parents]
    for is_end in (_is_repository, _is_project, _lists_requirements):
        for at, place in enumerate(places, start=1):
            if is_end(place):
                return places[:at]
    return places


def _is_repository(place: Path) -> bool:
    return paths.exists(place / ".git")  # a file in worktrees and submodules


def _is_project(place: Path) -> bool:
    return any(paths.is_file(place / name) for name in _PROJECT_FILES)


def _lists_requirements(place: Path) -> bool:
    return any(map(_is_requirements, names_in(place)))


def _in_active_environment() -> Evidence | None:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        found = _installed(_site_packages(Path(prefix))) if prefix else None
        if found:
            return found.evidence(f"from the active environment (${variable})")
    return None


def _in_own_environment() -> Evidence | None:
    found = _installed(Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages")))
    return found.evidence("from the environment pallas-lint runs in") if found else None


def _in_folders(folders: list[Path]) -> Evidence | None:
    is_anybodys = folders[-1] == folders[-1].parent  # where the project ends is not known: the note names the one used
    for place in folders:
        for name in ENVIRONMENT_FOLDERS:
            installed = _installed(_site_packages(place / name))
            if installed:
                shown = place / name if is_anybodys else name
                return installed.evidence(f"from {shown}", place / name)
    ranges: Evidence | None = None
    for place in folders:
        names = names_in(place)
        ranges = ranges or _required(place, names)
        found = _locked(place, names)
        if found is not None:
            return found if ranges is None else _agreed(found, ranges)
    return ranges


def _agreed(locked: Evidence, required: Evidence) -> Evidence:
    """The version of a lock file, unless the requirements have changed since: it is stale then."""
    versions = [spec.removeprefix("==") for spec in locked.specs]
    try:
        if any(ranges.within(f"=={spec}" if required.exact else spec, versions) for spec in required.specs):
            return locked
    except ValueError:  # of no version that can be compared
        return locked
    stale = f"jax {locked.text} {locked.source} is not what is required, {required.text} {required.source}"
    return evolve(required, note=f"{stale}: judged as the latter")


def _site_packages(prefix: Path) -> Iterator[Path]:
    """Where the environment at `prefix` keeps its packages, those of its base included if it sees them."""
    bases = [prefix]
    try:
        config = files.read(prefix / "pyvenv.cfg", files.MAX_SETTINGS_BYTES).decode("utf-8", "replace")
    except OSError:
        config = ""
    values = {
        key.strip().lower(): value.strip() for key, _, value in (line.partition("=") for line in config.splitlines())
    }
    if values.get("include-system-site-packages", "").lower() == "true" and values.get("home"):
        home = Path(values["home"])
        bases.append(home.parent if home.name.lower() in ("bin", "scripts") else home)
    for base in bases:
        yield base / "Lib" / "site-packages"
        for lib in ("lib", "lib64", "local/lib"):
            for versioned in names_in(base / lib):
                if versioned.startswith("python3"):
                    yield base / lib / versioned / "site-packages"
                    yield base / lib / versioned / "dist-packages"


@frozen
class _Packages:
    """The versions that one environment has: of jax (else jaxlib), and of libtpu."""

    jax: str
    libtpu: str | None

    def evidence(self, source: str, file: Path | None = None) -> Evidence:
        return Evidence((self.jax,), exact=True, source=source, libtpu=self.libtpu, file=file)


def _installed(places: Iterable[Path]) -> _Packages | None:
    """What is installed in the first of these folders that has jax, else in one that has jaxlib."""
    fallback: _Packages | None = None
    for place in places:
        found: dict[str, str] = {}
        for name in names_in(place):
            match = re.match(_DIST_INFO, name) if name[:3].lower() in ("jax", "lib") else None
            if match:
                found[match[1].lower()] = match[2]  # the last of several
        if "jax" in found:
            return _Packages(found["jax"], found.get("libtpu"))
        if fallback is None and "jaxlib" in found:
            fallback = _Packages(found["jaxlib"], found.get("libtpu"))
    return fallback


def _locked(place: Path, names: list[str]) -> Evidence | None:
    for name in LOCK_FILES:
        if name not in names:
            continue
        versions: dict[str, set[str]] = {}
        text = _read(place / name)
        for package, version in re.findall(_LOCKED, text) or _parsed_lock(text):
            versions.setdefault(package, set()).add(version)
        found = sorted(versions.get("jax") or versions.get("jaxlib") or ())
        libtpu = _only(versions.get("libtpu", ()))
        if len(found) == 1:
            return Evidence((found[0],), exact=True, source=f"from {name}", libtpu=libtpu, file=place / name)
        if found:
            specs = tuple(f"=={version}" for version in found)
            return Evidence(specs, exact=False, source=f"from {name}", libtpu=libtpu, file=place / name)
    for name in names:
        if name.startswith("requirements") and name.endswith(".txt"):
            parsed = _parse(_requirement_lines(_read(place / name)))
            pins = _pins(parsed)
            if pins:
                libtpu = _only(_pins(parsed, ("libtpu",)))
                return Evidence((pins[0],), exact=True, source=f"from {name}", libtpu=libtpu, file=place / name)
    return None


def _only(versions: Iterable[str]) -> str | None:
    """The one version there is; None of several."""
    found = [*versions]
    return found[0] if len(found) == 1 else None


def _parsed_lock(text: str) -> list[tuple[str, str]]:
    """The packages of a lock file that `_LOCKED` does not read: keys in another order, other quotes."""
    if len(text) > files.MAX_SETTINGS_BYTES or not re.search(_NAMED, text):
        return []
    data = load_toml(text) or {}
    listed = [data[key] for key in ("package", "packages") if isinstance(data.get(key), list)]
    tables = [each for tables in listed for each in tables if isinstance(each, dict)]
    versions = [(each.get("name"), each.get("version")) for each in tables]
    wanted = ("jax", "jaxlib", "libtpu")
    return [(name, version) for name, version in versions if name in wanted and isinstance(version, str)]


def _required(place: Path, names: list[str]) -> Evidence | None:
    """The ranges that the requirements in `place` allow: with extras and markers, any may be in force."""
    readers = [("pyproject.toml", _pyproject_lines), ("setup.cfg", lambda text: _requirement_lines(text))]
    readers += [(name, lambda text: _requirement_lines(text)) for name in names if name.startswith("requirements")]
    for name, reader in readers:
        if name not in names or not (name.endswith(".txt") or name in REQUIREMENT_FILES):
            continue
        parsed = _parse(reader(_read(place / name)))
        pins, libtpu = _pins(parsed), _only(_pins(parsed, ("libtpu",)))
        if pins:
            return Evidence((pins[0],), exact=True, source=f"from {name}", libtpu=libtpu, file=place / name)
        specs = {package: [s for p, s in parsed if p == package] for package in ("jax", "jaxlib")}
        chosen = sorted(set(specs["jax"] or specs["jaxlib"]))
        # A requirement without a version does not count where another one gives a bound.
        chosen = [spec for spec in chosen if spec] or []
        if chosen:
            source = f"from the requirements in {name}"
            return Evidence(tuple(chosen), exact=False, source=source, libtpu=libtpu, file=place / name)
    return None


def _pins(parsed: list[tuple[str, str]], packages: tuple[str, ...] = ("jax", "jaxlib")) -> list[str]:
    """The one version that all requirements of the first package that has some agree on, or nothing."""
    for package in packages:
        specs = {spec for name, spec in parsed if name == package and spec}
        if len(specs) == 1:
            match = re.fullmatch(r"===?([^,*]+)", next(iter(specs)))
            if match:
                return [match[1]]
    return []


def _parse(lines: Iterable[str]) -> list[tuple[str, str]]:
    """(package, PEP 440 specifier) of the requirements of jax and libtpu among `lines`; others are dropped."""
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for line in lines:
        match = re.match(_REQUIREMENT_LINE, line)
        if not match:
            continue
        text = f"{match[1]}{match[2]}".split(" --hash")[0].rstrip(" \\")
        if text in seen or len(text) > _MAX_REQUIREMENT_LENGTH or len(seen) == _MAX_REQUIREMENTS:
            continue
        seen.add(text)
        specifier = _plain_specifier(text[len(match[1]) :].strip())
        if specifier is not None:
            found.append((match[1].lower(), specifier))
            continue
        from packaging.requirements import InvalidRequirement, Requirement

        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if not requirement.url:
            found.append((requirement.name.lower(), str(requirement.specifier)))
    return found


def _plain_specifier(text: str) -> str | None:
    """The specifier of a requirement, of which `text` follows the name, where extras and a range are all it has."""
    if text.startswith("["):
        extras, closing, text = text[1:].partition("]")
        words = [word for extra in extras.split(",") for word in extra.strip().split("-")]
        if not closing or not all(word.isascii() and word.isalnum() for word in words):
            return None
    return ranges.spelled(text) if text.strip() else ""


def _requirement_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if any(name in line.lower() for name in ("jax", "libtpu"))]


def _pyproject_lines(text: str) -> list[str]:
    if "jax" not in text:
        return []
    data = load_toml(text)
    if data is None:
        return []
    project = _table(data, "project")
    lines = _strings(project.get("dependencies"))
    for group in (
        *_table(project, "optional-dependencies").values(),
        *_table(data, "dependency-groups").values(),
    ):
        lines += _strings(group)
    poetry = _table(_table(data, "tool"), "poetry")
    tables = [_table(poetry, "dependencies"), _table(poetry, "dev-dependencies")]
    tables += [_table(group, "dependencies") for group in _table(poetry, "group").values() if isinstance(group, dict)]
    for table in tables:
        for package in ("jax", "jaxlib", "libtpu"):
            constraint = table.get(package)
            if isinstance(constraint, dict):
                constraint = constraint.get("version")
            if isinstance(constraint, str):
                lines.append(package + _poetry_specifier(constraint))
    return lines


def _poetry_specifier(constraint: str) -> str:
    """A poetry constraint (`^0.4.35`, `~0.10`, `0.10.2`, `>=0.5`) as PEP 440, empty for `*` and unions."""
    constraint = constraint.strip()
    match = re.fullmatch(r"([~^]?)(\d{1,9}(?:\.\d{1,9})*)", constraint)
    if not match:
        return constraint if re.match(r"[<>=!~]", constraint) and "||" not in constraint else ""
    operator, version = match.groups()
    parts = [int(part) for part in version.split(".")]
    if not operator:
        return f"=={version}"
    if operator == "~":
        upper = parts[:2] if len(parts) > 1 else parts[:1]
    else:
        # Caret: the first part that is not zero may not change.
        first = next((index for index, part in enumerate(parts) if part), len(parts) - 1)
        upper = parts[: first + 1]
    upper[-1] += 1
    return f">={version},<{'.'.join(map(str, upper))}"


def load_toml(text: str) -> dict[str, Any] | None:
    """The parsed document, or None where it is broken."""
    from pallas_lint.text import toml

    try:
        return toml.loads(text)
    except (ValueError, RecursionError):  # broken, or too much for Python
        return None


def _read(path: Path) -> str:
    # Of most only two lines count, however many there are; this one is parsed.
    largest = files.MAX_SETTINGS_BYTES if path.name == "pyproject.toml" else files.MAX_BYTES
    try:
        return files.read(path, largest).decode("utf-8", "replace")
    except files.RefusedFile as error:
        raise UnreadableError(path, f"cannot read the file: {error.strerror}") from error
    except OSError:
        return ""


def _table(data: dict[str, Any], key: str) -> dict[str, Any]:
    value = data.get(key)
    return value if isinstance(value, dict) else {}


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def find_python(folder: Path, python: str | None = None) -> str:
    """The interpreter to run code of `folder` with: the configured one, the active environment's, the nearest
    `.venv`'s.

    Without any, the one that this process runs in. Raises InterpreterError.
    """
    prefixes: list[Path] = []
    if python is not None:
        import shutil

        path = _expanded(python)
        found = str(path.absolute()) if paths.is_file(path) else shutil.which(python) if os.sep not in python else None
        if found is not None:
            return found
        prefixes = [interpreter_prefix(python)]
    else:
        active = (os.environ.get(variable) for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"))
        prefixes = [Path(prefix) for prefix in active if prefix and _installed(_site_packages(Path(prefix)))]
        prefixes += [
            place / name
            for place in _upward(folder)
            for name in ENVIRONMENT_FOLDERS
            if _installed(_site_packages(place / name))
        ]
    for prefix in prefixes:
        for name in ("bin/python", "bin/python3", "Scripts/python.exe"):
            if paths.exists(prefix / name):
                return str(prefix / name)
    if python is not None:
        raise InterpreterError(f"--python: no interpreter in '{python}'")
    return sys.executable
