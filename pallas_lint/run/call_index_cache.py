"""Cache of a project's call index between runs: only files that have changed are read again."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from pallas_lint.known_calls.callers import Callers, Calls
from pallas_lint.known_calls.index import CallerIndex, Entry
from pallas_lint.known_calls.known_call import KnownCall
from pallas_lint.run.cache import tool_fingerprint
from pallas_lint.text.digests import digest

if TYPE_CHECKING:
    from pathlib import Path

    from pallas_lint.run.cache_folder import CacheFolder

_KIND = "calls"


def read(cache: CacheFolder, folder: Path, versions: tuple[str, ...]) -> Callers:
    """The stored calls of the project in a folder; empty where they cannot be read."""
    callers = Callers(folder)
    content = cache.read(_KIND, _name(folder, versions))
    if content is None:
        return callers
    try:
        state = json.loads(content)
        if state["tool"] != tool_fingerprint():
            return callers
        entries = {path: _entry(flat) for path, (*_, flat) in state["files"].items() if flat is not None}
        stamps = {path: (int(time), int(size)) for path, (time, size, _) in state["files"].items()}
        calls = {path: _calls(flat) for path, flat in state["calls"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return callers
    return Callers(folder, CallerIndex(entries), calls, stamps)


def keep(cache: CacheFolder, callers: Callers, versions: tuple[str, ...]) -> None:
    """Store the known calls of a project."""
    state = {
        "tool": tool_fingerprint(),
        "files": {
            path: [*stamp, _flat_entry(callers.index.entries.get(path))] for path, stamp in callers.stamps.items()
        },
        "calls": {
            path: [dict(calls.rests_on), list(map(_flat, calls.known_calls))] for path, calls in callers.calls.items()
        },
    }
    cache.write(_KIND, _name(callers.folder, versions), json.dumps(state, separators=(",", ":")).encode())


def _name(folder: Path, versions: tuple[str, ...]) -> str:
    # What files call may hang on the jax version: its guards choose.
    return digest(os.fsencode(folder) + repr(versions).encode())


def _flat_entry(entry: Entry | None) -> list[Any] | None:
    return None if entry is None else [entry.launches, entry.prepares, entry.imports, sorted(entry.defines)]


def _entry(flat: list[Any]) -> Entry:
    launches, prepares, imports, defines = flat
    return Entry(
        bool(launches), bool(prepares), tuple((target, bound) for target, bound in imports), frozenset(defines)
    )


def _flat(known_call: KnownCall) -> list[Any]:
    return [known_call.function, known_call.arguments, known_call.source]


def _calls(flat: list[Any]) -> Calls:
    rests_on, found = flat
    known_calls = (
        KnownCall(function, tuple((name, text) for name, text in arguments), source)
        for function, arguments, source in found
    )
    return Calls(tuple(known_calls), {str(path): str(known) for path, known in rests_on.items()})
