"""`pallas-lint --probe`: linting, with the probe for the functions that carry a probe comment."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pallas_lint.cli import progress
from pallas_lint.config.environment import InterpreterError, find_python
from pallas_lint.config.flags import UsageError
from pallas_lint.probe import reconcile, specs, stored_runs
from pallas_lint.probe.client import Worker, WorkerError
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.known_defects import known_defects
from pallas_lint.probe.report import launch_document
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.records import define, field
from pallas_lint.report.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import Finding, LintError
    from pallas_lint.probe.results import LaunchResult, ProbeResult
    from pallas_lint.text.source import Source


@define
class Probing:
    """The probe's findings for the comments of a run, and the session for further requests."""

    session: Session
    settings: Mapping[str, Settings]  # of each source, by its path as shown
    lines: Lines
    specs: dict[str, list[specs.Spec]]  # by path as shown
    findings: list[Finding] = field(factory=list, init=False)
    launches: list[LaunchResult] = field(factory=list, init=False)
    errors: list[LintError] = field(factory=list, init=False)
    silencing: set[tuple[str, int]] = field(factory=set, init=False)  # comments, by path and line
    _results: dict[str, list[ProbeResult]] = field(factory=dict, init=False)

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The launches as JSON has them."""
        return [launch_document(launch, self.session.cwd) for launch in self.launches]

    def probe(self, paths: Iterable[str]) -> None:
        """Probe the functions of these files and keep what is found. Raises UsageError."""
        fresh: list[ProbeResult] = []
        try:
            for path in paths:
                self._results[path] = [self.session.probe(spec) for spec in self.specs[path]]
                fresh += self._results[path]
        except WorkerError as error:
            raise UsageError(str(error)) from error
        everything = self._judge()
        cwd = self.session.cwd
        texts = {(cwd / path).resolve(): source for path, source in self.lines.texts.items()}
        stored_runs.store(cwd, fresh, everything, texts)

    def _judge(self) -> list[Finding]:
        """Store the results; returns all findings, also those that settings or comments silence."""
        everything: list[Finding] = []
        self.findings, self.launches, self.errors, self.silencing = [], [], [], set()
        for path, result in ((each, result) for each in self.specs for result in self._results[each]):
            findings, errors = findings_of(result, self.session.cwd, self.lines.line)
            findings += known_defects([result], self.lines)
            kept, silencing = reconcile.wanted(findings, lambda _, of=path: self.settings[of], self.lines.source)  # type: ignore[misc]
            everything += findings
            self.findings += [finding for finding in kept if finding not in self.findings]
            self.silencing |= silencing
            self.errors += errors
            self.launches += result.launches
        return everything

    def probe_changed(self, changed: Mapping[str, Source]) -> None:
        """Probe again the functions whose code is in files that have changed. Raises UsageError."""
        if not changed:
            return
        self.lines.texts.update(changed)
        files = {str((self.session.cwd / path).resolve()): source.text for path, source in changed.items()}
        self.session.texts = {**self.session.texts, **files}  # byte code on disk may be that of the old text
        for path in self.specs.keys() & changed.keys():
            self.specs[path] = list(specs.comments_in(changed[path].text, path))
        self.probe(
            [
                path
                for path, results in self._results.items()
                if path in changed or not all(each.files and files.keys().isdisjoint(each.files) for each in results)
            ]
        )

    def reconciled(self, static: Iterable[Finding]) -> list[Finding]:
        """The static findings and the probe's, each cause once."""
        return reconcile.reconciled(static, self.findings, self.launches, self.silencing)

    def difference(self, before: Source, after: Source) -> str | None:
        """What a fix changes in the result of a function that has a probe comment; None where nothing is seen to."""
        for spec in self.specs.get(before.path, ()):
            changed = self.session.differences(spec, after.text)
            if changed:
                return f"`{spec.function}` gives another result with it: {changed[0]}"
        return None


@contextlib.contextmanager
def probing(
    sources: Iterable[Source],
    settings: Mapping[str, Settings],
    cwd: Path,
    conditions: ProbeOptions,
    python: str | None,
    unsaved: Iterable[Source] = (),
) -> Iterator[Probing]:
    """Probe every commented function of these sources; the worker lives as long as the context. Raises UsageError.

    `settings` are those of each source, by its path as shown; `unsaved` are texts that are not as on disk.
    """
    wanted: dict[str, list[specs.Spec]] = {}
    texts = {source.path: source for source in sources if "pallas-lint" in source.text}
    try:
        for path, source in texts.items():
            found = list(specs.comments_in(source.text, path))
            if found:
                wanted[path] = found
        interpreter = find_python(cwd, python)
    except (specs.SpecError, InterpreterError) as error:
        raise UsageError(str(error)) from error
    with Worker(interpreter, cwd) as worker, progress.shown(cwd) as display:
        given = {str((cwd / source.path).resolve()): source.text for source in unsaved}
        session = Session(worker, cwd, conditions, display.show_status, display.show, given)
        result = Probing(session, settings, Lines(cwd, texts), wanted)
        result.probe(wanted)
        yield result
