"""Incremental linting for `--watch` and `--fix`: files that changed, and those that depend on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.notebooks import reading
from pallas_lint.run.project import InputFile, Project
from pallas_lint.run.runner import RunResult, check_source, combine
from pallas_lint.text.source import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pallas_lint.finding import FileResult, Finding
    from pallas_lint.text.source import Source


class Relinter:
    """Judges again what a round of fixes may have changed."""

    def __init__(self, cwd: Path, inputs: dict[str, InputFile], verdicts: dict[str, FileResult]) -> None:
        self.cwd = cwd
        self.inputs = inputs
        self.verdicts = verdicts

    def relint(self, sources: Mapping[str, Source], changed: frozenset[str]) -> list[Finding]:
        """All findings, with the files `changed` and those that rest on them judged again."""
        project = Project(self.cwd, {self.inputs[path].path: source for path, source in sources.items()})
        files = [self.inputs[path].path for path in changed]
        # A verdict may rest on a whole folder: see backend_inference.py.
        changed_files = {str(place) for file in files for place in (file, *file.parents)}
        for path, verdict in list(self.verdicts.items()):
            rests_on = {str(self.cwd / dependency) for dependency in verdict.dependencies}
            elsewhere = {finding.span.path for finding in verdict.findings}
            if path not in changed and not rests_on & changed_files and not elsewhere & changed:
                continue
            try:
                source = sources.get(path) or reading.read(self.inputs[path].path, path)
            except SourceError:
                continue
            self.verdicts[path] = check_source(source, self.inputs[path].settings, project)
        return list(self.result().findings)

    def result(self) -> RunResult:
        return combine(list(self.verdicts.values()))
