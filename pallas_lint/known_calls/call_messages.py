"""Messages about known calls: in findings that rest on them, and about those that fit no function."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from pallas_lint.finding import Finding, Position, Severity, Span
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.known_calls.shapes_file import Shapes


def place_of(finding: Finding) -> tuple[object, ...]:
    """A key that findings share of which one is enough."""
    return finding.code, finding.span, finding.backend, finding.cell


def likely(finding: Finding) -> Finding:
    """The finding, as a warning where it was an error: what it rests on is not certain."""
    return evolve(finding, severity=Severity.WARNING) if finding.severity is Severity.ERROR else finding


def annotate_with_calls(
    findings: Iterable[Finding], every: Iterable[Finding], analysis: Analysis, chosen: tuple[KnownCall, ...]
) -> Iterator[Finding]:
    """The findings that hold for some calls only with those named in their messages; `every`: with repetitions."""
    launches = [launch for launch in analysis.launches if launch.known_call is not None]
    # Where each stands by now: findings may be of an earlier text.
    now = {
        known_call: known_call
        for known_call in (*(launch.known_call for launch in launches if launch.known_call), *chosen)
    }
    calls: dict[KnownCall, set[KnownCall]] = {}  # by what was looked at: the calls that it stands for
    for launch, known_call in ((launch, launch.known_call) for launch in launches):
        assert known_call is not None
        calls.setdefault(known_call, {known_call}).update(
            other for known, other in analysis.outcome.alike if known is launch
        )
    speaking: dict[tuple[object, ...], set[KnownCall]] = {}
    for finding in every:
        if finding.known_call is not None:
            speaking.setdefault(place_of(finding), set()).update(calls.get(finding.known_call, {finding.known_call}))
    known = {each for each in (*chosen, *(each for some in calls.values() for each in some)) if each.is_call}
    counted = Counter(each.name for each in known)
    for finding in findings:
        if finding.known_call is not None:
            known_call = now.get(finding.known_call, finding.known_call)
            silent = [each for each in known - speaking[place_of(finding)] if each.name == known_call.name]
            causes = _causes(known_call, finding.message, silent)
            message = f"{finding.message}, {known_call.describe(finding.span.path, causes)}"
            alike = sum(each.name == known_call.name and each.is_call for each in speaking[place_of(finding)])
            known_calls = counted[known_call.name]
            if known_calls > 1 and alike:
                some = f"all {known_calls}" if alike == known_calls else f"{alike} of {known_calls}"
                message = f"{message} ({some} known calls)"
            finding = evolve(finding, message=message, known_call=known_call)
        yield finding


def _causes(known_call: KnownCall, message: str, silent: list[KnownCall]) -> frozenset[str]:
    """The arguments that a finding probably rests on: its message has them, or no call without it has the same."""
    words = set(re.findall(r"\w+", message))
    others = [dict(each.arguments) for each in silent]
    return frozenset(
        name
        for name, value in known_call.arguments
        if {name, value} & words or (others and all(each.get(name) != value for each in others))
    )


def stale(analysis: Analysis, shapes: Shapes) -> Iterator[Finding]:
    """Findings for recorded calls that do not fit their functions."""
    for known_call in analysis.stale:
        if known_call.kind == "comment":
            path, _, line = known_call.source.rpartition(":")
            message = f"`{known_call.name}` takes no such arguments: the probe comment has no effect"
            yield stale_finding(
                path, int(line), message, "name parameters that the function has, or remove the comment"
            )
        elif known_call.kind == "file":
            function = f"{shapes.path_of(analysis.module.file)}::{known_call.name}"
            message = (
                f"`{known_call.name}` is gone, or takes no such arguments any more: its recorded calls are not used"
            )
            yield stale_finding(shapes.shown, shapes.lines.get(function, 1), message)


_RECORD = "record the calls again (`pytest --pallas-lint --pallas-lint-record`), or take the entry out"


def stale_finding(path: str, line: int, message: str, help_: str = _RECORD) -> Finding:
    """A finding about a record or comment of a call."""
    place = Span(path, Position(line, 1), Position(line, 2))
    return Finding("PAL003", "stale-known-call", Severity.INFO, message, place, help_)
