"""Settings of the client: its own form of them, checked key by key, and never a reason to fail.

Clients write an object as VS Code has it (`{"lint": {"select": […]}, "target": "tpu"}`), its dotted form
(`{"lint.select": […]}`), or the keys of `[tool.pallas-lint]`. Nothing of it can switch the probe on: that is decided by
the command line of the server.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.config import options
from pallas_lint.config.environment import InterpreterError, interpreter_prefix
from pallas_lint.config.options import Kind, OptionError, nearest, one_of
from pallas_lint.config.settings import Overrides, configurable
from pallas_lint.records import evolve, field, fields, frozen

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

_ENVELOPES = ("pallasLint", "pallas-lint", "settings")
# What the VS Code extension alone looks at; it comes along where a client sends its whole section.
_CLIENTS_OWN = (
    "enable", "path", "importStrategy", "cwd", "logLevel", "logFile", "trace", "showNotifications", "statusBar",
    "probe.enable", "probe.run", "clientCommands",
)  # fmt: skip
# Keys of `[tool.pallas-lint]` under the names that they have in an editor.
_EDITOR_NAMES = {
    "target": "target",
    "jaxVersion": "jax-version",
    "severity": "severity",
    "lint.select": "select",
    "lint.extendSelect": "extend-select",
    "lint.ignore": "ignore",
}


def client_commands(options: object) -> frozenset[str]:
    """The capabilities in a client's initialization options: `{"clientCommands": [...]}`."""
    given = options.get("clientCommands") if isinstance(options, dict) else None
    return frozenset(each for each in given if isinstance(each, str)) if isinstance(given, list) else frozenset()


def _text_or_table(value: object) -> str | dict[str, Any]:
    if not isinstance(value, (str, dict)):
        raise OptionError("expected the path of a settings file, or an object of settings")
    return value


def _words(value: object) -> tuple[str, ...]:
    return tuple([value] if isinstance(value, str) else options.PATTERNS.parse(value))


def _memory(value: object) -> int:
    return options.memory_bytes(str(value))


def _targets(value: object) -> tuple[str, ...]:
    return tuple(str(target) for target in options.TARGETS.parse(value))


def _setting(key: str, parse: Any, default: Any, *also: str) -> Any:
    """A field read from the client's `key`, or from one of the names in `also`."""
    kind = parse if isinstance(parse, Kind) else Kind(parse, {})
    return field(default=default, metadata={"keys": (key, *also), "kind": kind})


@frozen
class ClientSettings:
    """The settings of a client for one folder. `problems` lists what of them could not be used."""

    enable: bool = _setting("lint.enable", options.BOOLEAN, True)
    run: str = _setting("lint.run", one_of("onType", "onSave"), "onType")
    configuration: str | Mapping[str, Any] | None = _setting("configuration", _text_or_table, None)
    preference: str = _setting(
        "configurationPreference", one_of("editorFirst", "filesystemFirst", "editorOnly"), "editorFirst"
    )
    exclude: tuple[str, ...] = _setting("exclude", _words, ())
    ignore_patterns: tuple[str, ...] = _setting("ignorePatterns", _words, ())
    args: tuple[str, ...] = _setting("args", _words, ())
    interpreter: str | None = _setting("interpreter", options.PATH, None, "python")
    unsafe_fixes: str = _setting("unsafeFixes", one_of("hint", "show", "off"), "hint")
    fix_all: bool = _setting("fixAll", options.BOOLEAN, True)
    fix_violation: bool = _setting("codeAction.fixViolation.enable", options.BOOLEAN, True)
    disable_rule_comment: bool = _setting("codeAction.disableRuleComment.enable", options.BOOLEAN, True)
    show_syntax_errors: bool = _setting("showSyntaxErrors", options.BOOLEAN, True)
    inlay_hints: bool = _setting("inlayHints.enable", options.BOOLEAN, True)
    inlay_dtype: bool = _setting("inlayHints.dtype", options.BOOLEAN, True)
    inlay_vmem: bool = _setting("inlayHints.vmem", options.BOOLEAN, True)
    inlay_grid_steps: bool = _setting("inlayHints.gridSteps", options.BOOLEAN, True)
    code_lens: bool = _setting("codeLens.enable", options.BOOLEAN, True)
    hover: bool = _setting("hover.enable", options.BOOLEAN, True)
    workspace_diagnostics: str = _setting("workspaceDiagnostics", one_of("off", "on"), "off")
    probe_timeout: float | None = _setting("probe.timeout", options.NUMBER, None)
    probe_memory: int | None = _setting("probe.memoryLimit", _memory, None, "probe.memory-limit")
    probe_targets: tuple[str, ...] = _setting("probe.targets", _targets, ())

    values: Mapping[str, Any] = field(factory=dict)  # raw values of `[tool.pallas-lint]`, checked, by key
    isolated: bool = False
    problems: tuple[str, ...] = ()

    def overrides(self, folder: Path) -> Overrides:
        """The client's settings, as on the command line; relative paths are in `folder`."""
        named = self.configuration if isinstance(self.configuration, str) else None
        return Overrides(
            self.values,
            self.interpreter,
            isolated=self.isolated,
            config_file=folder / Path(named).expanduser() if named else None,
            look_for_files=self.preference != "editorOnly",
            files_first=self.preference == "filesystemFirst",
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """Patterns of files to leave out, relative to the folder: what `--exclude` is to the command line."""
        return (*self.exclude, *self.ignore_patterns)


def parse(given: object) -> ClientSettings:
    """The settings in what a client sent; what cannot be used is left out and listed in `problems`."""
    problems: list[str] = []
    by_key = {key: a for a in fields(ClientSettings) for key in a.metadata.get("keys", ())}
    kinds = {key: a.metadata["kind"] for key, a in by_key.items()}
    found: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for key, value in _flattened(_unwrapped(given, problems), {*kinds, *_table_keys(), *_CLIENTS_OWN}):
        # Clients send null, and their settings editors leave empty lists behind, for settings that are not set.
        if value is None or value in ("", [], {}) or key in _CLIENTS_OWN:
            continue
        if key in kinds:
            _take(found, by_key[key].name, value, kinds[key], key, problems)
        elif key in _table_keys():
            name = _table_keys()[key]
            _check(values, name, value, key, problems)
        else:
            problems.append(f"unknown setting '{key}'{nearest(key, _known(kinds))}")
    table = found.get("configuration")
    if isinstance(table, dict):
        inline: dict[str, Any] = {}
        for key, value in table.items():
            _check(inline, key, value, f"configuration.{key}", problems)
        values = {**inline, **values}
    settings = ClientSettings(**found, values=values)
    settings = _with_arguments(settings, settings.args, problems)
    if settings.interpreter is not None:
        try:
            interpreter_prefix(settings.interpreter)
        except InterpreterError:
            problems.append(f"interpreter: there is no '{settings.interpreter}'")
            settings = evolve(settings, interpreter=None)
    return evolve(settings, problems=tuple(dict.fromkeys(problems)))


def _table_keys() -> dict[str, str]:
    """Accepted name -> key of `[tool.pallas-lint]`; `exclude` and `probe` mean something of their own to a client."""
    return {**_EDITOR_NAMES, **{key: key for key in configurable() if key not in ("exclude", "probe")}}


def _known(kinds: Mapping[str, Kind]) -> list[str]:
    return [*kinds, *_table_keys()]


def _unwrapped(given: object, problems: list[str]) -> Mapping[str, Any]:
    """The settings themselves: clients put them under a name, or two."""
    while isinstance(given, dict):
        inner = next((given[name] for name in _ENVELOPES if name in given), None)
        if inner is None:
            return {key: value for key, value in given.items() if key not in _ENVELOPES}
        given = inner
    if given is not None:
        problems.append("the settings from the editor are not an object")
    return {}


def _flattened(given: Mapping[str, Any], known: set[str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and values; an object is opened where a known name leads into it."""
    for key, value in given.items():
        name = f"{prefix}{key}"
        leads_further = any(each.startswith(f"{name}.") for each in known)
        if name not in known and leads_further and isinstance(value, dict):
            yield from _flattened(value, known, f"{name}.")
        else:
            yield name, value


def _take(found: dict[str, Any], name: str, value: object, kind: Kind, key: str, problems: list[str]) -> None:
    try:
        found[name] = kind.parse(value)
    except OptionError as error:
        problems.append(f"{'.'.join((key, *error.keys))}: {error.message}")


def _check(values: dict[str, Any], name: str, value: object, key: str, problems: list[str]) -> None:
    """Keep the raw value of a key of `[tool.pallas-lint]` if the key would take it."""
    known = configurable()
    if name not in known:
        problems.append(f"unknown setting '{key}'{nearest(name, known)}")
        return
    parsed: dict[str, Any] = {}
    _take(parsed, name, value, known[name].metadata["kind"], key, problems)
    if name in parsed:
        values[name] = value


def _with_arguments(settings: ClientSettings, words: Sequence[str], problems: list[str]) -> ClientSettings:
    """The settings with `args` below them, read by the command line's own parser."""
    from pallas_lint.config.flags import HelpRequested, UsageError, parse_lint
    from pallas_lint.config.overrides import from_options

    if not words:
        return settings
    try:
        parsed = parse_lint(list(words))
    except UsageError as error:
        problems.append(f"args: {error}")
        return settings
    except HelpRequested:
        problems.append(f"args: '{' '.join(words)}' prints help, which an editor has no place for")
        return settings
    problems += [f"args: {option} has no effect in an editor" for option in _without_effect(parsed)]
    overrides = from_options(parsed)
    values: dict[str, Any] = {}
    for key, value in overrides.values.items():
        _check(values, key, value, f"args: --{key}", problems)
    return evolve(
        settings,
        values={**values, **settings.values},
        configuration=settings.configuration or (str(overrides.config_file) if overrides.config_file else None),
        interpreter=settings.interpreter or overrides.python,
        isolated=overrides.isolated,
        exclude=(*settings.exclude, *(pattern for patterns in parsed.exclude for pattern in patterns)),
        unsafe_fixes="show" if parsed.unsafe_fixes and settings.unsafe_fixes == "hint" else settings.unsafe_fixes,
    )


def _without_effect(parsed: argparse.Namespace) -> Iterator[str]:
    if parsed.paths:
        yield parsed.paths[0]
    for name in ("fix", "diff", "statistics", "show_kernels", "probe"):
        if getattr(parsed, name):
            yield f"--{name.replace('_', '-')}"
