"""`pallas-lint --probe`: linting, with the probe for the functions that carry a probe comment."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from attrs import define, field

from pallas_lint.cli import UsageError, progress
from pallas_lint.environment import InterpreterError, find_python
from pallas_lint.probe import facts, settle, specs
from pallas_lint.probe.client import Worker, WorkerError
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.report import launch_document
from pallas_lint.probe.session import Conditions, Session
from pallas_lint.project import project_root
from pallas_lint.report.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from pallas_lint.finding import Finding, LintError
    from pallas_lint.probe.results import LaunchResult
    from pallas_lint.settings import Settings
    from pallas_lint.source import Source


@define
class Probing:
    """What the probe found for the comments of a run, and the session to ask more."""

    session: Session
    specs: dict[str, list[specs.Spec]] = field(factory=dict)  # by path as shown
    findings: list[Finding] = field(factory=list)
    launches: list[LaunchResult] = field(factory=list)
    errors: list[LintError] = field(factory=list)
    silencing: set[tuple[str, int]] = field(factory=set)  # comments, by path and line

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The launches as JSON has them."""
        return [launch_document(launch, self.session.cwd) for launch in self.launches]

    def settled(self, static: Iterable[Finding]) -> list[Finding]:
        """The static findings and the probe's, each cause once."""
        return settle.settled(static, self.findings, self.launches, self.silencing)

    def difference(self, before: Source, after: Source) -> str | None:
        """What a fix changes in the result of a function that has a probe comment; None where nothing is seen to."""
        for spec in self.specs.get(before.path, ()):
            changed = self.session.differences(spec, after.text)
            if changed:
                return f"`{spec.function}` gives another result with it: {changed[0]}"
        return None


@contextlib.contextmanager
def probing(
    sources: Iterable[Source], settings: Mapping[str, Settings], cwd: Path, conditions: Conditions, python: str | None
) -> Iterator[Probing]:
    """Probe every commented function of these sources; the worker lives as long as the context. Raises UsageError.

    `settings` are those of each source, by its path as shown.
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
    with Worker(interpreter, cwd) as worker, progress.shown() as tell:
        lines = Lines(cwd, texts)
        result = Probing(Session(worker, cwd, conditions, tell), wanted)
        results = []
        everything: list[Finding] = []
        try:
            for path, spec in ((path, spec) for path, each in wanted.items() for spec in each):
                probed = result.session.probe(spec)
                results.append(probed)
                findings, errors = findings_of(probed, cwd, lines.line)
                kept, silencing = settle.wanted(findings, lambda _, of=path: settings[of], lines.source)  # type: ignore[misc]
                everything += findings
                result.findings += [finding for finding in kept if finding not in result.findings]
                result.silencing |= silencing
                result.errors += errors
                result.launches += probed.launches
        except WorkerError as error:
            raise UsageError(str(error)) from error
        facts.store(project_root(cwd), cwd, results, everything)
        yield result
