"""What findings say of the calls that they rest on, and what is said of calls that fit no function."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pallas_lint.finding import Finding, Position, Severity, Span
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.witnesses.shapes_file import Shapes
    from pallas_lint.witnesses.witness import Witness


def place_of(finding: Finding) -> tuple[object, ...]:
    """The same for findings of which one is enough."""
    return finding.code, finding.span, finding.backend, finding.cell


def likely(finding: Finding) -> Finding:
    """The same where it is not sure."""
    return evolve(finding, severity=Severity.WARNING) if finding.severity is Severity.ERROR else finding


def naming_calls(
    findings: Iterable[Finding], every: Iterable[Finding], analysis: Analysis, told: tuple[Witness, ...]
) -> Iterator[Finding]:
    """The findings that hold for some calls only with those named in their messages; `every`: with repetitions."""
    launches = [launch for launch in analysis.launches if launch.witness is not None]
    # Where each stands by now: findings may be of an earlier text.
    now = {witness: witness for witness in (*(launch.witness for launch in launches if launch.witness), *told)}
    calls: dict[Witness, set[Witness]] = {}  # by what was looked at: the calls of which that can be told
    for launch, witness in ((launch, launch.witness) for launch in launches):
        assert witness is not None
        calls.setdefault(witness, {witness}).update(other for known, other in analysis.outcome.alike if known is launch)
    speaking: dict[tuple[object, ...], set[Witness]] = {}
    for finding in every:
        if finding.witness is not None:
            known = calls.get(finding.witness, {finding.witness})
            speaking.setdefault(place_of(finding), set()).update(known)
    counted = Counter(
        each.name for each in {*told, *(each for some in calls.values() for each in some)} if each.is_call
    )
    for finding in findings:
        if finding.witness is not None:
            witness = now.get(finding.witness, finding.witness)
            message = f"{finding.message}, {witness.describe(finding.span.path)}"
            alike = sum(each.name == witness.name and each.is_call for each in speaking[place_of(finding)])
            known_calls = counted[witness.name]
            if known_calls > 1 and alike:
                some = f"all {known_calls}" if alike == known_calls else f"{alike} of {known_calls}"
                message = f"{message} ({some} known calls)"
            finding = evolve(finding, message=message, witness=witness)
        yield finding


def stale(analysis: Analysis, shapes: Shapes) -> Iterator[Finding]:
    """What is said of calls that were written down and do not fit their functions."""
    for witness in analysis.stale:
        if witness.kind == "comment":
            path, _, line = witness.source.rpartition(":")
            message = f"`{witness.name}` takes no such arguments: the probe comment tells nothing"
            yield stale_finding(
                path, int(line), message, "name parameters that the function has, or remove the comment"
            )
        elif witness.kind == "file":
            function = f"{shapes.path_of(analysis.module.file)}::{witness.name}"
            message = f"`{witness.name}` is gone, or takes no such arguments any more: its calls on record say nothing"
            yield stale_finding(shapes.shown, shapes.lines.get(function, 1), message)


_RECORD = "record the calls again (`pytest --pallas-lint --pallas-lint-record`), or take the entry out"


def stale_finding(path: str, line: int, message: str, help_: str = _RECORD) -> Finding:
    """A finding about what says how a function is called."""
    place = Span(path, Position(line, 1), Position(line, 2))
    return Finding("PAL003", "stale-witness", Severity.INFO, message, place, help_)


def _likely(finding: Finding) -> Finding:
    return evolve(finding, severity=Severity.WARNING)
