"""Stored probe results of an open document, as far as they hold for its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.probe import dependencies, reconcile, stored_runs
from pallas_lint.records import define, evolve, field
from pallas_lint.text import paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.probe.results import LaunchResult
    from pallas_lint.probe.stored_runs import StoredRun
    from pallas_lint.text.source import Source


@define(eq=False)
class Probed:
    """The runs of files, read again where the command line or this server has written new ones.

    There are none where the workspace is not `trusted`.
    """

    trusted: bool = True
    _read: dict[Path, tuple[int, tuple[StoredRun, ...]]] = field(factory=dict, init=False)
    _others: dict[str, tuple[str, Mapping[str, int]]] = field(factory=dict, init=False)  # text and its statements

    def runs(self, file: Path) -> tuple[StoredRun, ...]:
        """Every run that is kept for a file, whatever its text is by now."""
        changed = stored_runs.stamp(file) if self.trusted else 0
        if not changed:
            self._read.pop(file, None)
            return ()
        known = self._read.get(file)
        if known is None or known[0] != changed:
            known = self._read[file] = (changed, stored_runs.load(file))
        return known[1]

    def merge_results(self, state: DocumentState, file: Path, text_of: Callable[[str], Source | None]) -> DocumentState:
        """The verdict with what probes found, as far as the code that they ran is still there."""
        file_analysis, settings = state.file_analysis, state.settings
        if file_analysis is None or settings is None:
            return state
        runs = self.runs(file)
        if not runs:
            return state
        state = evolve(state, probe_rests_on=frozenset(each.file for run in runs for each in run.rests_on))
        from pallas_lint.syntax.outline import outline

        pieces = file_analysis.analysis.module.outline if file_analysis.analysis is not None else outline(state.source)

        def places_in(path: str) -> Mapping[str, int]:
            return dependencies.places(pieces) if path == state.source.path else self._places(path, text_of)

        holding = stored_runs.fitting(runs, state.source.path, places_in)
        known = {run.function for run in holding}
        state = evolve(state, probed_before=tuple(run for run in runs if run.function and run.function not in known))
        if not holding:
            return state
        kept, used = reconcile.wanted(
            (finding for run in holding for finding in run.findings), lambda _: settings, text_of
        )
        launches = [launch for run in holding for launch in run.launches]
        found = reconcile.reconciled(file_analysis.result.findings, kept, launches, used)
        result = evolve(file_analysis.result, findings=tuple(found))
        return evolve(
            state, file_analysis=evolve(file_analysis, result=result), probed=holding, probe_findings=tuple(kept)
        )

    def _places(self, path: str, text_of: Callable[[str], Source | None]) -> Mapping[str, int]:
        """Where the statements of another file are; its path is untrusted input."""
        from pallas_lint.syntax.outline import outline

        source = text_of(path) if paths.is_file(path) else None
        if source is None:
            return {}
        known = self._others.get(path)
        if known is None or known[0] != source.text:
            known = self._others[path] = (source.text, dependencies.places(outline(source)))
        return known[1]


def launches_at(runs: Sequence[StoredRun], path: str, line: int, kernel: str | None = None) -> Iterator[LaunchResult]:
    """What was probed of the launch on a line, the newest first; of one kernel where `kernel` names it."""
    for run in reversed(runs):
        for launch in run.launches:
            place = launch.place
            if place is None or place["file"] != path or kernel not in (None, launch.kernel):
                continue
            if place["line"] <= line <= (place.get("end_line") or place["line"]):
                yield launch


def kernels_at(runs: Sequence[StoredRun], path: str, line: int) -> Iterator[LaunchResult]:
    """What was probed of the kernel that is defined on a line or below its decorators there, the newest first."""
    for run in reversed(runs):
        for launch in run.launches:
            place = launch.facts["kernel_place"]
            if place is not None and place["file"] == path and place["line"] == line:
                yield launch
