"""The steps that findings go through between their rules and a report, in order: the same in terminals and editors.

Those of one file end in its verdict, which is kept. Those of a run put the verdicts on several files together: fixes,
suppression comments and the probe take their findings from there. Those of a report come last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import ELSEWHERE, Related
from pallas_lint.known_calls.call_messages import annotate_with_calls, place_of
from pallas_lint.records import define, evolve, field, frozen
from pallas_lint.ruleset.registry import all_rules
from pallas_lint.triage import suppressions
from pallas_lint.triage.minimum_version import merge_minimum_version_findings
from pallas_lint.triage.repeated_findings import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pallas_lint.config.settings import Settings
    from pallas_lint.config.targets import JaxVersions
    from pallas_lint.finding import Finding
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.text.source import Source


# -- one file ----------------------------------------------------------------------------------------------------------


@define(eq=False)
class FileContext:
    """A file that was judged. `complete`: all of it, so that a comment that silences nothing is idle."""

    source: Source
    settings: Settings
    module: Module
    analysis: Analysis
    known_calls: tuple[KnownCall, ...]
    complete: bool
    used_suppressions: set[tuple[str, int]] = field(factory=set)  # comments in other files that silenced some


def of_file(findings: Sequence[Finding], file: FileContext) -> tuple[Finding, ...]:
    """The findings of one file's verdict, of all that its rules found."""
    found = [*findings]
    for step in (_with_calls, _enabled, _not_silenced, _grouped, _in_cells, _fixable):
        found = step(found, file)
    return tuple(sorted(found, key=lambda finding: finding.sort_key))


def _with_calls(findings: list[Finding], file: FileContext) -> list[Finding]:
    """One finding for one place, code and backend, with the calls for which it holds.

    A helper may be reached by many kernels and launches. The most severe finding stays, and of those the first: what
    holds for any call comes before what holds for one. It names the devices of all that are as severe.
    """
    best: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        place = place_of(finding)
        known = best.setdefault(place, finding)
        if known is not finding and finding.severity.rank > known.severity.rank:
            best[place] = finding
        elif finding.severity is known.severity and finding.core == known.core:
            best[place] = known.with_devices(finding)
    return list(annotate_with_calls(best.values(), findings, file.analysis, file.known_calls))


def _enabled(findings: list[Finding], file: FileContext) -> list[Finding]:
    """Without rules that settings turn off for the files that the findings lie in."""
    enabled = {path: file.settings.enabled_in(path) for path in {finding.span.path for finding in findings}}
    return [finding for finding in findings if finding.code in enabled[finding.span.path]]


def _not_silenced(findings: list[Finding], file: FileContext) -> list[Finding]:
    """Without those that a comment silences, and with those about comments that silence none."""
    source, tree = file.source, file.module.outline.tree
    enabled = file.settings.enabled_in(source.path)
    kept = suppressions.apply(source, findings, enabled, report_unused=file.complete, tree=tree)
    for path in {finding.span.path for finding in kept} - {source.path}:
        other = file.module.graph.source_of(path)
        if other is not None:
            kept, used = suppressions.silence(other, kept)
            file.used_suppressions |= used
    return [each for each in kept if each.code != suppressions.CODE or file.analysis.judged(each.span.start.line)]


def _grouped(findings: list[Finding], file: FileContext) -> list[Finding]:
    """For rules that report once a file, the first finding for all, with their places and fixes."""
    found: list[Finding] = []
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in sorted(findings, key=lambda finding: finding.sort_key):
        entry = all_rules().get(finding.code)
        if entry is not None and entry.package is None and entry.rule.group_by_message:
            groups.setdefault((finding.code, finding.span.path, finding.message), []).append(finding)
        else:
            found.append(finding)
    for first, *others in groups.values():
        places = (*first.related, *(Related(other.span, ELSEWHERE) for other in others))
        fixes = [
            evolve(alike[0], edits=tuple(edit for each in alike for edit in each.edits))
            for alike in zip(*(each.fixes for each in (first, *others)), strict=False)
        ]
        found.append(evolve(first, related=places, fixes=tuple(fixes)) if others else first)
    return found


def _in_cells(findings: list[Finding], file: FileContext) -> list[Finding]:
    """At the lines of a notebook's cells."""
    return [file.source.with_cell_positions(finding) for finding in findings]


def _fixable(findings: list[Finding], file: FileContext) -> list[Finding]:
    """Without fixes of rules that settings let fix nothing."""
    unfixed = file.settings.unfixed
    return [evolve(each, fixes=()) if each.code in unfixed and each.fixes else each for each in findings]


# -- several files -----------------------------------------------------------------------------------------------------


def of_run(findings: Sequence[Finding], used_suppressions: Collection[tuple[str, int]]) -> tuple[Finding, ...]:
    """The findings of the verdicts on several files, sorted.

    What several files' kernels show at one place of a helper is one finding, the most severe, which points at all of
    them. A comment in a helper may silence what only a kernel in another file makes of it: such comments are `used`.
    """
    found: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        if finding.code == suppressions.CODE and (finding.span.path, finding.span.start.line) in used_suppressions:
            continue
        key = (*place_of(finding), finding.message)
        known = found.setdefault(key, finding)
        if known is not finding:
            worst = max(known, finding, key=lambda each: each.severity.rank)
            found[key] = evolve(worst, related=tuple(dict.fromkeys((*known.related, *finding.related))))
    return tuple(sorted(found.values(), key=lambda finding: finding.sort_key))


# -- a report ----------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class ReportContext:
    """What is reported. `jax_of`: the versions that each file is checked for, by path.

    `without_known` leaves out the findings of a baseline. `at_each_place`: a removed name is shown wherever it is used,
    as editors do, and not once for all files.
    """

    jax_of: Mapping[str, JaxVersions]
    without_known: Callable[[Sequence[Finding]], Sequence[Finding]]
    at_each_place: bool = False


def of_report(findings: Sequence[Finding], report: ReportContext) -> list[Finding]:
    """The findings that are shown, of those of a run."""
    found = merge_minimum_version_findings(report.without_known(findings), report.jax_of)
    return found if report.at_each_place else folded(found)
