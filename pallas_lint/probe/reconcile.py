"""Findings of the static rules compared with the probe's: confirmed, refuted for these shapes, or left alone.

The probe's own findings are subject to settings and comments as those of the rules are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Severity
from pallas_lint.identity import ById
from pallas_lint.records import evolve
from pallas_lint.triage import suppressions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import Finding, Span
    from pallas_lint.probe.results import LaunchResult
    from pallas_lint.text.source import Source

# Families that say "will not lower or compile": a compiler that compiles the kernel refutes them.
_REFUTABLE = ("PAL1", "PAL2")
_OF_COST = "PAL8"
_OF_VERSIONS = "PAL706"  # known defects: what counts is the jax and libtpu that ran the kernel
# A compiler accepts these, though they cost precision or time: it does not refute them.
_BEYOND_COMPILERS = frozenset({"PAL106", "PAL210"})
# Rules about values never written, and the code with which running the kernel shows them.
_POISONED = {"PAL401": "PAL907", "PAL402": "PAL907", "PAL406": "PAL907", "PAL409": "PAL907", "PAL417": "PAL906"}


def wanted(
    findings: Iterable[Finding], settings_of: Callable[[str], Settings], text_of: Callable[[str], Source | None]
) -> tuple[list[Finding], set[tuple[str, int]]]:
    """The probe's findings that neither a setting nor a comment silences, each once and as severe as settings say.

    And the comments that silenced some, by path and line. `settings_of` and `text_of` know files by their path.
    """
    by_file: dict[str, list[Finding]] = {}
    for finding in dict.fromkeys(findings):
        by_file.setdefault(finding.span.path, []).append(finding)
    found: list[Finding] = []
    used: set[tuple[str, int]] = set()
    for path, here in by_file.items():
        settings, source = settings_of(path), text_of(path)
        enabled = settings.enabled_in(path)
        kept = [finding for finding in here if finding.code in enabled]
        if source is not None:
            kept, silencing = suppressions.silence(source, kept)
            used |= silencing
        found += [evolve(each, severity=settings.severity_of(each.code) or each.severity) for each in kept]
    return found, used


def reconciled(
    static: Iterable[Finding],
    probed: Sequence[Finding],
    launches: Sequence[LaunchResult],
    used: Collection[tuple[str, int]] = (),
) -> list[Finding]:
    """All findings, each cause once.

    A static finding that the probe confirms takes the place of the probe's, with a note; one that it refutes becomes an
    info with the reason. No comment is idle that is `used` to silence what the probe finds.
    """
    confirmed: set[ById] = set()
    found: list[Finding] = []
    for finding in static:
        if finding.code == suppressions.CODE and (finding.span.path, finding.span.start.line) in used:
            continue
        if _is_of_other_versions(finding, launches):
            continue
        same = [each for each in probed if _same(finding, each)]
        # Of several operands that are wrong in one way each has a finding of its own.
        same = [each for each in same if _overlap(finding.span, each.span)] or same
        if same:
            confirmed |= {ById(each) for each in same}
            help_ = f"{finding.help} (the probe confirms it: {same[0].message})".strip()
            severity = max(finding.severity, same[0].severity, key=lambda severity: severity.rank)
            found.append(evolve(finding, origin="probe", severity=severity, help=help_))
            continue
        if _costs_nothing(finding, launches):
            continue
        reason = _refutation(finding, launches)
        if reason is None:
            found.append(finding)
        else:
            found.append(evolve(finding, severity=Severity.INFO, help=f"{reason}; {finding.help}".rstrip("; ")))
    found += [each for each in probed if ById(each) not in confirmed]
    return sorted(found, key=lambda finding: finding.sort_key)


def _same(static: Finding, probed: Finding) -> bool:
    """Whether both are about one cause."""
    if static.kernel not in (None, probed.kernel):
        return False
    if static.backend and probed.backend and static.backend != probed.backend:
        return False
    if static.code == probed.code:
        lines = range(static.span.start.line, static.span.end.line + 1)
        related = {each.span.start.line for each in static.related}
        return static.span.path == probed.span.path and (
            probed.span.start.line in lines or probed.span.start.line in related
        )
    return static.kernel is not None and _POISONED.get(static.code) == probed.code


def _overlap(one: Span, other: Span) -> bool:
    return one.path == other.path and one.start <= other.end and other.start <= one.end


def _is_of_other_versions(finding: Finding, launches: Iterable[LaunchResult]) -> bool:
    """Whether it is about a defect of the project's versions, in a kernel that was judged for those that ran it."""
    return finding.code == _OF_VERSIONS and any(launch.kernel == finding.kernel for launch in launches)


def _costs_nothing(finding: Finding, launches: Iterable[LaunchResult]) -> bool:
    """Whether it is about a cost, and the predicted ones do not show it."""
    if not finding.code.startswith(_OF_COST):
        return False
    mine = [cost for launch in launches if launch.kernel == finding.kernel for cost in launch.costs]
    predicted = [cost for cost in mine if not finding.devices or cost["target"].rpartition(":")[2] in finding.devices]
    return bool(predicted) and all(cost["microseconds"] is not None for cost in predicted)


def _refutation(finding: Finding, launches: Iterable[LaunchResult]) -> str | None:
    """Why a finding does not hold for what was probed; None where the probe does not refute it."""
    if not finding.code.startswith(_REFUTABLE) or finding.code in _BEYOND_COMPILERS or finding.backend is None:
        return None
    mine = [launch for launch in launches if launch.kernel == finding.kernel]
    passed = []
    for launch in mine:
        stages = [
            stage
            for stage in launch.stages
            if stage.stage == "compile" and stage.target and _is_for(stage.target, finding)
        ]
        if not stages or not all(stage.ok for stage in stages):
            return None
        passed += [stage.target for stage in stages if stage.target]
    if not passed or not {*finding.devices} <= {target.partition(":")[2] for target in passed}:
        return None
    return f"the probe compiles it for {', '.join(sorted(set(passed)))} with the shapes that it was given"


def _is_for(target: str, finding: Finding) -> bool:
    backend, _, device = target.partition(":")
    return backend.replace("-", "_") == finding.backend and (not finding.devices or device in finding.devices)
