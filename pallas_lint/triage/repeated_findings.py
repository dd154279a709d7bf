"""One finding for one cause of a whole project: a name that jax has removed is reported once, with all its places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import ELSEWHERE, Related
from pallas_lint.records import evolve
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.finding import Finding, Fix

_CODES = frozenset(("PAL701",))


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, with one for all with the same message on a removed name: the first, with the fixes of all."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        same = (finding.message, finding.help, finding.severity, finding.jax)
        place = () if finding.code in _CODES else (finding.span, len(groups))
        groups.setdefault((finding.code, *same, *place), []).append(finding)
    return [_one(first, others) for first, *others in groups.values()]


def _one(first: Finding, others: list[Finding]) -> Finding:
    if not others:
        return first
    more = count_of(len(others), "more place")
    fixes: dict[str, list[Fix]] = {}
    for fix in (fix for finding in (first, *others) for fix in finding.fixes):
        fixes.setdefault(fix.applicability, []).append(fix)
    merged = [evolve(alike[0], edits=tuple(edit for fix in alike for edit in fix.edits)) for alike in fixes.values()]
    related = (*first.related, *(Related(other.span, ELSEWHERE) for other in others))
    return evolve(first, message=f"{first.message} ({more})", related=related, fixes=tuple(merged))
