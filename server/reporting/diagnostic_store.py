"""The findings of all files by the file they lie in: a verdict on one file may have findings in others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.records import define, field
from pallas_lint.triage.pipeline import of_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pallas_lint.finding import FileResult, Finding


@define(eq=False)
class DiagnosticStore:
    """The newest verdict on each file; what is open in the editor goes before what a run over the workspace found.

    All paths are absolute, with forward slashes.
    """

    _open: dict[str, FileResult] = field(factory=dict)
    _from_workspace: dict[str, FileResult] = field(factory=dict)
    _touching: dict[str, set[str]] = field(factory=dict)  # path -> the files whose verdicts concern it

    def put(self, verdict: FileResult) -> set[str]:
        """A verdict on a document; the paths whose findings may be others now."""
        return self._change({verdict.path}, lambda: self._open.__setitem__(verdict.path, verdict))

    def close(self, path: str) -> set[str]:
        return self._change({path}, lambda: self._open.pop(path, None))

    def replace_folder(self, folder: Path, verdicts: Iterable[FileResult]) -> set[str]:
        """The verdicts on all files of a folder, in place of those before."""
        fresh = {verdict.path: verdict for verdict in verdicts}
        old = {path for path in self._from_workspace if Path(path).is_relative_to(folder)}
        return self._change({*old, *fresh}, lambda: self._replace(old, fresh))

    def _replace(self, old: set[str], fresh: dict[str, FileResult]) -> None:
        for path in old:
            del self._from_workspace[path]
        self._from_workspace.update(fresh)

    def _change(self, origins: set[str], change: Callable[[], object]) -> set[str]:
        touched: set[str] = set()
        for origin in origins:
            for path in self._concerned(origin):
                touched.add(path)
                self._touching.get(path, set()).discard(origin)
        change()
        for origin in origins:
            for path in self._concerned(origin):
                touched.add(path)
                self._touching.setdefault(path, set()).add(origin)
        return touched

    def _concerned(self, origin: str) -> set[str]:
        verdict = self._verdict(origin)
        if verdict is None:
            return set()
        lying = {finding.span.path for finding in verdict.findings}
        return {origin, *lying, *(path for path, _ in verdict.used_suppressions)}

    def _verdict(self, origin: str) -> FileResult | None:
        return self._open.get(origin) or self._from_workspace.get(origin)

    def findings(self, path: str) -> tuple[Finding, ...]:
        """What lies in a file, whichever file's kernels it concerns."""
        touching = [self._verdict(origin) for origin in sorted(self._touching.get(path, ()))]
        verdicts = [verdict for verdict in touching if verdict is not None]
        used = {place for verdict in verdicts for place in verdict.used_suppressions}
        here = [finding for verdict in verdicts for finding in verdict.findings if finding.span.path == path]
        return of_run(here, used)

    @property
    def paths(self) -> list[str]:
        """Every path that a verdict is on, or has findings in."""
        return sorted(path for path, origins in self._touching.items() if origins)
