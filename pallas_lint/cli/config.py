"""`pallas-lint config`: the settings in force, and where each came from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.cli import terminal
from pallas_lint.cli.exit import OK
from pallas_lint.config import overrides
from pallas_lint.config.flags import UsageError
from pallas_lint.config.settings import SettingsError, SettingsFinder, configurable, schema
from pallas_lint.config.targets import Target
from pallas_lint.finding import Severity
from pallas_lint.report.style import visible
from pallas_lint.report.wrapping import width_of, wrapped
from pallas_lint.text import paths
from pallas_lint.text.paths import shown_path

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pallas_lint.config.settings import Settings

_MAX_ALIGNED = 40  # of the settings behind which the origins begin in one column


def run(options: argparse.Namespace) -> int:
    """Print the settings for a folder. Raises UsageError for bad settings too: here they are the subject."""
    if options.schema:
        terminal.write([json.dumps(schema(), indent=2) + "\n"])
        return OK
    if len(options.paths) > 1:
        raise UsageError("config: give one folder")
    cwd = Path.cwd()
    settings = settings_of(options, cwd)
    if options.output_format == "json":
        terminal.write([json.dumps(document(settings, cwd), indent=2) + "\n"])
    else:
        terminal.write(_lines(settings, cwd))
    return OK


def settings_of(options: argparse.Namespace, cwd: Path) -> Settings:
    """The settings for the folder that is named, or of the file that is; default: `cwd`. Raises UsageError."""
    folder = cwd / (options.paths[0] if options.paths else ".")
    if not paths.exists(folder):
        raise UsageError(f"{options.paths[0]}: no such file or folder")
    try:
        finder = SettingsFinder(overrides.from_options(options), cwd)
        return finder.for_folder(folder if paths.is_folder(folder) else folder.parent)
    except SettingsError as error:
        raise UsageError("; ".join(map(str, error.all))) from error


def document(settings: Settings, cwd: Path) -> dict[str, Any]:
    """The settings as plain data."""
    jax = settings.jax
    return {
        "config_file": shown_path(settings.config_file, cwd) if settings.config_file else None,
        "settings": {
            key: {"value": _plain(getattr(settings, a.name)), "origin": settings.origins.get(key, "default")}
            for key, a in configurable().items()
        },
        "jax": {
            "versions": list(jax.versions),
            "exact": jax.exact,
            "assumed": jax.assumed,
            "source": jax.source,
            "note": jax.note,
            "libtpu": jax.libtpu,
        },
        "rules": sorted(settings.enabled),
    }


def _lines(settings: Settings, cwd: Path) -> Iterator[str]:
    file = shown_path(settings.config_file, cwd) if settings.config_file else "none"
    yield f"# configuration file: {visible(file)}\n"
    entries = [
        (f"{key} = {_toml(_plain(getattr(settings, a.name)))}", settings.origins.get(key, "default"))
        for key, a in configurable().items()
    ]
    column = max(len(text) for text, _ in entries if len(text) <= _MAX_ALIGNED)
    for text, origin in entries:
        # What has to be folded ends in its origin, which keeps together.
        origin_text = f"  # {visible(origin)}".replace(" ", "\N{NO-BREAK SPACE}")
        folded = wrapped(f"{visible(f'{text:{column}}')}{origin_text}", width_of(sys.stdout), 0, 4)
        yield from (f"{part}\n".replace("\N{NO-BREAK SPACE}", " ") for part in folded)
    jax = settings.jax
    versions = jax.newest if len(jax.versions) == 1 else f"{jax.oldest} to {jax.newest} ({len(jax.versions)} versions)"
    facts = [f"jax: {versions}, {'assumed' if jax.assumed else visible(jax.source)}", visible(jax.note or "")]
    facts += [f"libtpu: {visible(jax.libtpu)}"] if jax.libtpu else []
    yield "\n"
    for line in (*filter(None, facts), f"rules: {len(settings.enabled)} enabled"):
        yield from (f"# {part.lstrip()}\n" for part in wrapped(line, width_of(sys.stdout), 2, 2))


def _plain(value: Any) -> Any:
    """A setting's value as JSON has it."""
    match value:
        case Severity():
            return value.value
        case Target():
            return str(value)
        case tuple() | list():
            return [_plain(item) for item in value]
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case _:
            return value


def _toml(value: Any) -> str:
    """A plain value as TOML has it, on one line; what is not set as a pair of dashes."""
    match value:
        case None:
            return "--"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            inner = ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {_toml(item)}" for key, item in value.items())
            return f"{{{inner}}}"
        case _:
            return str(value)
