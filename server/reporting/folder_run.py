"""A lint run over folders in a separate process: reads a job and writes findings.

The editor's documents are judged in the server's process, which stays as quick as it was; a run that is not wanted any
more is ended with its process.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.config.settings import Overrides, SettingsError, SettingsFinder
from pallas_lint.report.json import error_document, finding_document
from pallas_lint.run.cache import flat
from pallas_lint.run.cache_folder import own_cache
from pallas_lint.run.project import discover
from pallas_lint.run.runner import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import FileResult


_PORTION = 200  # files between two reports of progress


def main() -> None:
    """Reads the folders from standard input as one JSON document, writes lines of JSON to standard output."""
    with contextlib.suppress(OSError):  # a process may have all the niceness it can have
        os.nice(10)
    for folder in json.load(sys.stdin):
        for line in _from_workspace(Path(folder["path"]), _overrides(folder["overrides"]), folder["exclude"]):
            print(json.dumps(line), flush=True)


def _overrides(given: dict[str, Any]) -> Overrides:
    named = given.pop("config_file")
    return Overrides(**given, config_file=Path(named) if named else None)


def _from_workspace(folder: Path, overrides: Overrides, exclude: list[str]) -> Iterator[dict[str, Any]]:
    try:
        finder = SettingsFinder(overrides, folder)
    except SettingsError as error:
        yield {"error": {"path": error.path or "", "line": error.line, "message": error.message}}
        return
    found = discover(["."], finder, cwd=folder, exclude=exclude)
    yield from ({"error": error_document(error)} for error in found.errors)
    kept = own_cache(folder)
    for start in range(0, len(found.files), _PORTION):
        result = run(found.files[start : start + _PORTION], cwd=folder, cache_folder=kept)
        yield from ({"verdict": _document(verdict)} for verdict in result.verdicts if _is_worth_sending(verdict))
        yield {"launches": list(map(flat, result.launches))}
        yield {"done": min(start + _PORTION, len(found.files)), "of": len(found.files)}


def _is_worth_sending(verdict: FileResult) -> bool:
    return bool(verdict.findings or verdict.errors or verdict.used_suppressions)


def _document(verdict: FileResult) -> dict[str, Any]:
    return {
        "path": verdict.path,
        "findings": [finding_document(finding) for finding in verdict.findings],
        "used": verdict.used_suppressions,
        "errors": [error_document(error) for error in verdict.errors],
        "traceback": verdict.traceback,
    }
