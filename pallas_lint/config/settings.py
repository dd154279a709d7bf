"""Settings: where they are found, how they are checked and merged, and the values for one file."""

from __future__ import annotations

import os
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.config import extension, options, selection
from pallas_lint.config.bounds import CONFIG_NAMES
from pallas_lint.config.lines import line_of
from pallas_lint.config.options import OptionError, nearest, setting
from pallas_lint.config.patterns import covers
from pallas_lint.config.selection import Layer
from pallas_lint.config.targets import JaxVersions, Target, resolve_jax_version, without_unknown_devices
from pallas_lint.finding import LintError, Severity
from pallas_lint.identity import ById
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.records import evolve, field, fields, frozen
from pallas_lint.text import files
from pallas_lint.text.digests import digest
from pallas_lint.text.paths import shown_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attrs import Attribute

_NO_TABLE = "there is no [tool.pallas-lint] table in it"
_NO_VALUE = "{}: this setting cannot have that value"
DEFAULT_EXCLUDE = (
    ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pallas-lint-cache",
    ".pytest_cache", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode", "__pycache__", "__pypackages__",
    "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip


class SettingsError(Exception):
    """Settings that cannot be used, at `path` and `line`; both None for the command line.

    `public` is the message without anything that the file holds.
    """

    def __init__(
        self,
        message: str,
        path: str | None = None,
        line: int | None = None,
        more: Sequence[SettingsError] = (),
        *,
        public: str = "the file cannot be used",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.public = public
        self.path = path
        self.line = line
        self.all = (self, *more)  # that are wrong in one place, this one first

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}: " if self.line else f"{self.path}: " if self.path else ""
        return where + self.message

    def without_content(self, path: str) -> SettingsError:
        """The error for the file shown as `path`, without a quote from it or from the files that it extends."""
        errors = []
        for each in self.all:
            is_own = each.path == path
            message = each.public if is_own else "extend: the file that it names cannot be used"
            message += " (nothing is quoted of a file outside of the project)"
            errors.append(SettingsError(message, path, each.line if is_own else None))
        first, *more = errors
        return SettingsError(first.message, first.path, first.line, more)

    @property
    def as_lint_error(self) -> LintError:
        return LintError(self.path or "", self.message, self.line)


@frozen(eq=False, slots=False)
class Settings:
    """Everything that decides what is reported for the files of one folder.

    Fields made with `setting` are the keys of the configuration; the others are worked out from them.
    """

    target: tuple[Target, ...] = setting(
        "target",
        options.TARGETS,
        (),
        "Backends to judge every kernel for; without it each kernel's own is inferred.",
    )
    jax_version: str = setting(
        "jax-version", options.JAX_VERSION, "auto", "`auto`, a version (0.10.2) or a range (>=0.8,<0.11)."
    )
    select: tuple[str, ...] | None = setting(
        "select", options.SELECTORS, None, "Rules to use: codes, code prefixes, names or ALL."
    )
    extend_select: tuple[str, ...] = setting(
        "extend-select", options.SELECTORS, (), "Rules to use besides those of `select`."
    )
    ignore: tuple[str, ...] = setting("ignore", options.SELECTORS, (), "Rules not to use.")
    preview: bool = setting("preview", options.BOOLEAN, False, "Also use rules that may still change or go.")
    per_file_ignores: Mapping[str, tuple[str, ...]] = setting(
        "per-file-ignores", options.PER_FILE_IGNORES, {}, "Rules not to use in files that match a pattern."
    )
    severity: Mapping[str, Severity] = setting(
        "severity", options.SEVERITIES_BY_RULE, {}, "Severity per rule, instead of the rule's own."
    )
    exclude: tuple[str, ...] = setting(
        "exclude", options.PATTERNS, DEFAULT_EXCLUDE, "Files and folders to leave out, as in .gitignore."
    )
    include: tuple[str, ...] = setting(
        "include",
        options.PATTERNS,
        (),
        "Markdown files to lint besides Python and notebooks, as in .gitignore: `*.md`.",
    )
    extend_exclude: tuple[str, ...] = setting(
        "extend-exclude", options.PATTERNS, (), "Files and folders to leave out besides those of `exclude`."
    )
    respect_gitignore: bool = setting(
        "respect-gitignore", options.BOOLEAN, True, "Leave out what .gitignore files leave out."
    )
    fixable: tuple[str, ...] = setting("fixable", options.SELECTORS, ("ALL",), "Rules whose findings may be fixed.")
    unfixable: tuple[str, ...] = setting("unfixable", options.SELECTORS, (), "Rules whose findings are never fixed.")
    extend: str | None = setting("extend", options.PATH, None, "Another settings file, for what this one does not set.")
    fail_on: Severity = setting(
        "fail-on", options.SEVERITY, Severity.WARNING, "Least severity that makes the exit status 1."
    )
    calls: Mapping[str, tuple[str, ...]] = setting(
        "calls",
        options.CALLS,
        {},
        "Calls that a harness makes of what a file defines: a list, or lists by pattern of files.",
    )
    assume: Mapping[str, int] = setting(
        "assume", options.ASSUMPTIONS, {}, "Values of symbols, for the rules that need numbers."
    )
    shapes: str | None = setting(
        "shapes", options.PATH, None, "File of recorded calls; empty for none. Found in the project where not set."
    )
    cache_dir: str | None = setting(
        "cache-dir",
        options.PATH,
        None,
        "Folder for cached results; counts only in a file that --config names.",
    )
    baseline: str | None = setting("baseline", options.PATH, None, "File of known findings, not reported again.")
    rules: Mapping[str, Mapping[str, Any]] = setting("rules", options.RULE_OPTIONS, {}, "Options of single rules.")
    probe: Mapping[str, Any] = setting("probe", options.PROBE, {}, "Settings of the probe.")

    root: Path = field(factory=Path.cwd)  # patterns are relative to it: the folder of the configuration, or of the run
    config_file: Path | None = None
    jax: JaxVersions = field(factory=lambda: JaxVersions(("",), exact=False, assumed=True, source="", text=""))
    layers: tuple[Layer, ...] = ()  # what configuration and command line select
    origins: Mapping[str, str] = field(factory=dict)  # key -> where its value came from, for keys not at their default

    @cached_property
    def enabled(self) -> frozenset[str]:
        """The codes in use, before per-file-ignores.

        Computed when needed: a run that finds all its results in the cache needs no list of rules.
        """
        return selection.enabled(self.layers, preview=self.preview)

    def enabled_in(self, path: str) -> frozenset[str]:
        """The codes to report in the file shown as `path`: `enabled` less its per-file-ignores."""
        if not self.per_file_ignores:
            return self.enabled
        relative = self._relative(path)
        ignored: set[str] = set()
        for pattern, selectors in self.per_file_ignores.items():
            if covers(pattern, relative):
                ignored |= selection.codes_of(*selectors)
        return self.enabled - ignored

    def calls_in(self, path: str) -> tuple[str, ...]:
        """The configured calls for the file shown as `path`."""
        relative = self._relative(path) if self.calls else ""
        return tuple(call for pattern, calls in self.calls.items() if covers(pattern, relative) for call in calls)

    def _relative(self, path: str) -> str:
        return os.path.relpath(Path(path).absolute(), self.root).replace(os.sep, "/")

    @cached_property
    def unfixed(self) -> frozenset[str]:
        """The codes whose findings are reported without their fixes."""
        if self.fixable == ("ALL",) and not self.unfixable:
            return frozenset()
        return selection.codes_of("ALL") - selection.codes_of(*self.fixable) | selection.codes_of(*self.unfixable)

    def severity_of(self, code: str) -> Severity | None:
        """The severity configured for a rule by its most specific selector, or None for the rule's own."""
        found = [s for s in self.severity if code in selection.codes_of(s)]
        return self.severity[max(found, key=selection.specificity)] if found else None

    def fingerprint(self) -> str:
        """A digest of all that changes what is found in a file, not of what changes which files are read."""
        parts = (
            [str(target) for target in self.target],
            self.jax.versions, self.jax.exact, self.jax.text, self.jax.assumed, self.jax.libtpu,
            [(layer.select, layer.extend, layer.ignore) for layer in self.layers if layer != Layer()], self.preview,
            str(self.root) if self.per_file_ignores or self.calls else "", [*self.calls.items()],
            [(p, s) for p, s in self.per_file_ignores.items()],
            sorted((s, v.value) for s, v in self.severity.items()), sorted(self.fixable), sorted(self.unfixable),
            sorted(self.assume.items()), sorted((c, sorted(o.items())) for c, o in self.rules.items()),
        )  # fmt: skip
        return digest(repr(parts).encode("utf-8", "surrogatepass"))


@frozen
class Overrides:
    """Settings from the command line: raw values by key, and those that only it has."""

    values: Mapping[str, Any] = field(factory=dict)
    python: str | None = None
    isolated: bool = False
    config_file: Path | None = None
    look_for_files: bool = True
    files_first: bool = False  # values and config_file only count for keys that no settings file has


def configurable() -> dict[str, Attribute[Any]]:
    """The configuration keys, with the field of Settings that each fills."""
    return {a.metadata["key"]: a for a in fields(Settings) if "key" in a.metadata}


class SettingsFinder:
    """Gives each folder its settings: nearest configuration file upward, then the command line."""

    def __init__(self, overrides: Overrides | None = None, cwd: Path | None = None) -> None:
        """Raises SettingsError for bad values on the command line or in the file it names."""
        self._overrides = overrides or Overrides()
        self._cwd = cwd or Path.cwd()
        parsed = _parsed(self._overrides.values, None, "")
        self._command_line, self._below = ({}, parsed) if self._overrides.files_first else (parsed, {})
        self._defaults = _underlaid(Settings(root=self._cwd), self._below)
        self._by_folder: dict[Path, Settings] = {}
        self._bases: dict[Path, Settings] = {}
        self._evidence_folders: dict[Path, Path] = {}
        self._completed: dict[tuple[ById, Path], Settings] = {}
        self._by_file: dict[Path, Settings | None] = {}
        self._named: Settings | None = None
        if self._overrides.config_file is not None:
            self._named = self._load(self._overrides.config_file, required=True)
            if self._overrides.files_first:
                self._named, self._defaults = None, self._named or self._defaults

    @property
    def named(self) -> Settings | None:
        """The settings of the file that the command line names."""
        return self._named

    def for_folder(self, folder: Path) -> Settings:
        """The settings for files in `folder`. Raises SettingsError where its configuration is bad."""
        folder = folder.absolute()
        known = self._by_folder.get(folder)
        if known is None:
            base = self._base(folder)
            is_given = self._command_line.get("jax-version", base.jax_version) != "auto"
            place = self._cwd if is_given or self._overrides.isolated else self._evidence_folder(folder)
            known = self._completed.get((ById(base), place))
            if known is None:
                known = self._completed[ById(base), place] = self._complete(base, place)
            self._by_folder[folder] = known
        return known

    def _base(self, folder: Path) -> Settings:
        """The configuration in force in `folder`, before the command line."""
        if self._overrides.isolated or self._named is not None or not self._overrides.look_for_files:
            return self._named or self._defaults
        passed: list[Path] = []
        found = None
        for place in chain((folder,), folder.parents):
            found = self._bases.get(place) or self._load(place / CONFIG_NAMES[0]) or self._load(place / CONFIG_NAMES[1])
            passed.append(place)
            if found is not None:
                break
        base = found or self._defaults
        self._bases.update(dict.fromkeys(passed, base))
        return base

    def _evidence_folder(self, folder: Path) -> Path:
        """The nearest folder upward that may have another jax version than the folders above it."""
        from pallas_lint.config.environment import has_evidence

        passed = []
        for place in chain((folder,), folder.parents):
            known = self._evidence_folders.get(place)
            if known is not None:
                break
            passed.append(place)
            try:
                names = os.listdir(place)  # noqa: PTH208
            except OSError:
                names = []
            if has_evidence(names):
                known = place
                break
        result = known or passed[-1]
        self._evidence_folders.update((place, result) for place in passed)
        return result

    def _complete(self, base: Settings, folder: Path) -> Settings:
        """`base` with the command line over it, the rules chosen and the jax version found for `folder`."""
        settings = _overridden(base, self._command_line)
        try:
            jax = resolve_jax_version(
                settings.jax_version,
                folder,
                self._overrides.python,
                set_by=settings.origins.get("jax-version", "jax-version"),
                isolated=self._overrides.isolated,
            )
        except ValueError as error:
            raise SettingsError(str(error)) from error
        if jax.problem is not None:
            shown = shown_path(Path(jax.problem.path), self._cwd)
            jax = evolve(jax, problem=evolve(jax.problem, path=shown))
        jax = without_unknown_devices(jax, settings.target)
        values = self._command_line
        from_command_line = Layer(values.get("select"), values.get("extend-select", ()), values.get("ignore", ()))
        return evolve(
            settings, jax=jax, layers=(Layer(base.select, base.extend_select, base.ignore), from_command_line)
        )

    def _load(self, file: Path, *, required: bool = False) -> Settings | None:
        if file not in self._by_file:
            loaded = load(file, self._cwd, required=required)
            self._by_file[file] = _underlaid(loaded, self._below) if loaded is not None else None
        return self._by_file[file]


def load(
    file: Path, cwd: Path | None = None, *, required: bool = False, extending: tuple[Path, ...] = ()
) -> Settings | None:
    """The settings in `file`, or None where it has none (and is not `required` to). Raises SettingsError."""
    shown = shown_path(file, cwd or Path.cwd())
    try:
        data = files.read(file, files.MAX_SETTINGS_BYTES)
    except OSError as error:
        if required or not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            message = f"cannot read the configuration: {error.strerror or error}"
            raise SettingsError(message, shown, public=message) from error
        return None
    try:
        return loads(data, file, shown, cwd, required=required, extending=extending)
    except SettingsError as error:
        named_by_user = required and not extending
        if named_by_user or extension.is_in_project(file, (*extending, file)[0].parent):
            raise
        raise error.without_content(shown) from None


def loads(
    data: bytes, file: Path, shown: str, cwd: Path | None = None, *,
    required: bool = False, extending: tuple[Path, ...] = (),
) -> Settings | None:  # fmt: skip
    """The settings in `data`, the content of `file`, or None as in `load`. Raises SettingsError.

    `extending`: the files whose `extend` led here. `cwd`: what paths in errors are relative to.
    """
    in_pyproject = file.name == "pyproject.toml"
    # A pyproject.toml that never mentions the tool is not even parsed: it may be broken for all we care.
    if in_pyproject and b"pallas-lint" not in data:
        if b"[tool.pallas_lint" in data:
            line = data[: data.index(b"[tool.pallas_lint")].count(b"\n") + 1
            raise SettingsError("[tool.pallas_lint]: the table is called [tool.pallas-lint]", shown, line)
        if required:
            raise SettingsError(_NO_TABLE, shown, public=_NO_TABLE)
        return None
    document, text = _document(data, shown)
    prefix: tuple[str, ...] = ()
    if in_pyproject:
        prefix = ("tool", "pallas-lint")
        table = document.get("tool")
        document = table.get("pallas-lint") if isinstance(table, dict) else None  # type: ignore[assignment]
        if document is None:
            if required:
                raise SettingsError(_NO_TABLE, shown, public=_NO_TABLE)
            return None
    if not isinstance(document, dict):
        raise SettingsError("tool.pallas-lint must be a table", shown, line_of(text, ("tool", "pallas-lint")))
    values = _parsed(document, shown, text, prefix)
    origins = {key: f"{shown}:{line_of(text, (*prefix, key)) or 1}" for key in values}
    by_field = {configurable()[key].name: value for key, value in values.items()}
    base = Settings()
    if "extend" in values:
        try:
            other = extension.extended(values["extend"], (*extending, file))
        except OptionError as error:
            where = int(origins["extend"].rpartition(":")[2])
            raise SettingsError(f"extend: {error.message}", shown, where, public=_NO_VALUE.format("extend")) from error
        base = load(other, cwd, required=True, extending=(*extending, file)) or base
    return evolve(base, **by_field, root=file.parent.absolute(), config_file=file, origins={**base.origins, **origins})


def _document(data: bytes, shown: str) -> tuple[dict[str, Any], str]:
    from pallas_lint.text import toml

    if len(data) > files.MAX_SETTINGS_BYTES:  # of an open document
        raise SettingsError(f"it is larger than {format_bytes(files.MAX_SETTINGS_BYTES)}", shown)
    try:
        text = data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SettingsError("TOML must be UTF-8", shown, line, public="TOML must be UTF-8") from error
    try:
        return toml.loads(text), text
    except toml.TOMLDecodeError as error:
        message, line = toml.located(error, text)
        raise SettingsError(f"invalid TOML: {message}", shown, line, public="invalid TOML") from error
    except (ValueError, RecursionError) as error:  # Python's own limits, which TOML does not have
        what = "nested too deeply" if isinstance(error, RecursionError) else "a number of too many digits"
        raise SettingsError(f"cannot read the configuration: {what}", shown) from error


def _parsed(values: Mapping[str, Any], shown: str | None, text: str, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
    """The checked values. Raises SettingsError; `shown` None means the command line."""
    known = configurable()
    result: dict[str, Any] = {}
    wrong: list[SettingsError] = []
    for key, value in values.items():
        public = _NO_VALUE.format(key) if key in known else "unknown key"
        try:
            if key not in known:
                raise OptionError(f"unknown key '{key}'{nearest(key, known)}")
            result[key] = known[key].metadata["kind"].parse(value)
        except OptionError as error:
            if shown is None:
                wrong.append(SettingsError(f"--{key}: {error.message}"))
                continue
            where = ".".join((key, *error.keys))
            message = error.message if error.message.startswith("unknown key") else f"{where}: {error.message}"
            line = line_of(text, (*prefix, key, *error.keys))
            wrong.append(SettingsError(message, shown, line, public=public))
    if wrong:
        first, *more = wrong
        raise SettingsError(first.message, first.path, first.line, more, public=first.public)
    return result


def _underlaid(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """`settings` with `values` for the keys that they leave at their defaults."""
    changes = {configurable()[key].name: value for key, value in values.items() if key not in settings.origins}
    return evolve(settings, **changes) if changes else settings


def _overridden(base: Settings, values: Mapping[str, Any]) -> Settings:
    """`base` with the values of the command line.

    Lists of what to leave out grow, everything else is replaced.
    """
    known = configurable()
    changes: dict[str, Any] = {}
    origins = dict(base.origins)
    for key, value in values.items():
        name = known[key].name
        old = getattr(base, name)
        if (
            key in ("ignore", "extend-select", "extend-exclude")
            and old
            and not (key == "ignore" and "select" in values)
        ):
            value = (*old, *value)
            origins[key] = f"{origins[key]}, --{key}"
        else:
            origins[key] = f"--{key}"
        changes[name] = value
    if "select" in values:
        for key in ("extend-select", "ignore"):
            if key not in values:
                changes[known[key].name] = ()
                origins.pop(key, None)
    return evolve(base, **changes, origins=origins)


def schema() -> dict[str, Any]:
    """The JSON schema of the `pallas-lint.toml` file and of the `[tool.pallas-lint]` table."""
    from pallas_lint.ruleset.registry import all_rules

    rules = all_rules()
    prefixes = {code[:length] for code in rules for length in (3, 4, 5)}
    words = sorted({*rules, *(info.name for info in rules.values())})
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pallas-lint settings",
        "type": "object",
        "properties": {
            key: {"description": a.metadata["doc"], **a.metadata["kind"].schema} for key, a in configurable().items()
        },
        "additionalProperties": False,
        "definitions": {"rule": {"enum": words}, "selector": {"enum": ["ALL", *sorted(prefixes), *words]}},
    }
