"""Results kept from earlier runs, found by the content they were made from."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint import __version__
from pallas_lint.finding import Edit, FileResult, Finding, Fix, Position, Related, Severity, Span
from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.launch_summary import LaunchSummary
from pallas_lint.records import define, evolve, field, fields
from pallas_lint.report.json import finding_document
from pallas_lint.ruleset import plugins
from pallas_lint.text import files
from pallas_lint.text.digests import digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.run.cache_folder import CacheFolder
    from pallas_lint.run.project import Project

_KIND = "lint"
_LAYOUT = 7  # of the entries; a new number makes all old entries void


@define
class Cache:
    """Verdicts in a cache folder: one entry for each file linted, in JSON. Whatever is wrong with one is silent."""

    folder: CacheFolder
    cwd: Path
    project: Project
    _digests: dict[str, str] = field(factory=dict)

    def key(self, shown: str, data: bytes, settings_fingerprint: str, known_calls: tuple[KnownCall, ...] = ()) -> str:
        """What a verdict rests on, dependencies apart."""
        parts = (shown, settings_fingerprint, repr(known_calls), str(_LAYOUT), tool_fingerprint(), digest(data))
        return digest("\0".join(parts).encode("utf-8", "surrogatepass"))

    def get(self, shown: str, key: str) -> FileResult | None:
        """The verdict stored for this file under this key, if all it depends on is unchanged."""
        content = self.folder.read(_KIND, self._name(shown))
        if content is None:
            return None
        try:
            entry = json.loads(content)
            if entry["key"] != key:
                return None
            if any(_time(path) != known for path, known in entry["plugins"].items()):
                return None
            if any(self._digest(path) != known for path, known in entry["dependencies"].items()):
                return None
            return FileResult(
                shown,
                tuple(map(_with_known_call, map(decode, entry["findings"]), entry["known calls"])),
                kernels=int(entry["kernels"]),
                dependencies=tuple(entry["dependencies"]),
                used_suppressions=tuple((str(path), int(line)) for path, line in entry["used_suppressions"]),
                launches=tuple(map(launch_of, entry["launches"])),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def put(self, verdict: FileResult, key: str) -> None:
        """Store a verdict, unless it is one of failure."""
        if verdict.errors or verdict.notes or verdict.traceback:
            return
        entry = {
            "key": key,
            "plugins": _plugins(),
            "kernels": verdict.kernels,
            "dependencies": {path: self._digest(path) for path in verdict.dependencies},
            "used_suppressions": verdict.used_suppressions,
            "launches": list(map(flat, verdict.launches)),
            "findings": [finding_document(finding) for finding in verdict.findings],
            "known calls": [None if f.known_call is None else flat(f.known_call) for f in verdict.findings],
        }
        self.folder.write(_KIND, self._name(verdict.path), json.dumps(entry, separators=(",", ":")).encode())

    def _name(self, shown: str) -> str:
        # Named by path, so that an edited file replaces its entry and the folder does not grow.
        return digest(os.fsencode(self.cwd / shown))

    def _digest(self, path: str) -> str:
        """The digest of a file that a verdict depends on, empty if there is none; of a folder, its evidence.

        A verdict rests on the folder where the backend of a launch was presumed, or might have been.
        """
        known = self._digests.get(path)
        if known is None:
            place = self.cwd / path
            try:
                known = digest(repr(self.project.evidence(place)).encode() if place.is_dir() else files.read(place))
            except OSError:
                known = ""
            self._digests[path] = known
        return known


_tool: str | None = None


def tool_fingerprint() -> str:
    """A digest of this version of the tool.

    That is its number, the times of its files (for those who work on it), the Python version, and the rules that
    other packages offer.
    """
    global _tool
    if _tool is None:
        folder = Path(__file__).parents[1]
        rules = _folder_of("pallas_lint.rules")
        # In a checkout the rules lie elsewhere.
        newest = max(_newest(str(place)) for place in {folder, rules or folder} if place.parent != folder)
        _tool = digest(f"{__version__} {newest} {sys.version_info[:2]} {plugins.installed()}".encode())
    return _tool


def _folder_of(package: str) -> Path | None:
    from importlib.util import find_spec

    spec = find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def _newest(folder: str) -> int:
    newest = 0
    with os.scandir(folder) as scan:
        for entry in scan:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    newest = max(newest, _newest(entry.path))
            else:
                newest = max(newest, entry.stat().st_mtime_ns)
    return newest


_plugin_files: dict[str, int] | None = None


def _plugins() -> dict[str, int]:
    """The files of rules that others added, with their times."""
    global _plugin_files
    if _plugin_files is None:
        from importlib.util import find_spec

        from pallas_lint.ruleset.registry import all_rules

        _plugin_files = {}
        modules = {info.module for info in all_rules().values()}
        for name in sorted(name for name in modules if name and not name.startswith("pallas_lint.")):
            with contextlib.suppress(ImportError, ValueError):
                spec = find_spec(name)
                if spec is not None and spec.origin:
                    _plugin_files[spec.origin] = _time(spec.origin)
    return _plugin_files


def _time(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def decode(document: dict[str, Any]) -> Finding:
    """The finding that `finding_document` wrote.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    return Finding(
        code=document["code"],
        name=document["name"],
        severity=Severity(document["severity"]),
        message=document["message"],
        span=_span(document),
        help=document["help"],
        kernel=document["kernel"],
        backend=document["backend"],
        device=document["device"],
        core=document["core"],
        jax=document["jax"],
        dtype=document["dtype"],
        origin=document["origin"],
        related=tuple(Related(_span(related), related["message"]) for related in document["related"]),
        fixes=tuple(_fix(fix) for fix in document["fixes"]),
        page=None if plugins.is_own(document["code"]) else document["url"],
    )


def flat(record: KnownCall | LaunchSummary) -> tuple[object, ...]:
    """A record of plain values as JSON."""
    return tuple(getattr(record, each.name) for each in fields(type(record)))


def launch_of(values: list[Any]) -> LaunchSummary:
    """The summary of which these are the values."""
    launch = LaunchSummary(*values)
    return evolve(launch, defined=tuple(launch.defined))


def _with_known_call(finding: Finding, values: list[Any] | None) -> Finding:
    if values is None:
        return finding
    function, arguments, *rest = values
    return evolve(finding, known_call=KnownCall(function, tuple((name, text) for name, text in arguments), *rest))


def _position(document: dict[str, int]) -> Position:
    return Position(int(document["line"]), int(document["column"]))


def _span(document: dict[str, Any]) -> Span:
    return Span(document["path"], _position(document["start"]), _position(document["end"]), document["cell"])


def _fix(document: dict[str, Any]) -> Fix:
    edits: Iterable[dict[str, Any]] = document["edits"]
    return Fix(
        document["title"],
        document["applicability"],
        tuple(Edit(_span(edit), str(edit["text"])) for edit in edits),
    )
