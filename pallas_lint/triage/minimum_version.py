"""The effective minimum jax version of a project: one finding, not one at each name that the declared one lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Related
from pallas_lint.identity import ById
from pallas_lint.records import evolve
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pallas_lint.config.targets import JaxVersions
    from pallas_lint.finding import Finding

_CODE = "PAL703"
_MAX_PLACES = 5  # of other uses that are shown


def merge_minimum_version_findings(findings: Iterable[Finding], jax_of: Mapping[str, JaxVersions]) -> list[Finding]:
    """The findings, with one PAL703 for each range of jax that files are checked for: the one with the highest minimum.

    Raising the minimum for it settles all the others. What the newest jax of the range lacks is reported at each place.
    `jax_of`: by path of the file.
    """
    found = list(findings)
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in found:
        jax = jax_of.get(finding.span.path)
        if finding.code == _CODE and jax is not None and _newest_without(finding) in jax.versions[:-1]:
            groups.setdefault(jax.versions, []).append(finding)
    if not groups:
        return found
    instead: dict[ById, Finding | None] = {}
    for allowed, group in groups.items():
        top = max(group, key=lambda finding: allowed.index(_newest_without(finding)))
        instead.update((ById(finding), None) for finding in group)
        instead[ById(top)] = _minimum(top, [each for each in group if each is not top], allowed)
    kept = [each for finding in found if (each := instead.get(ById(finding), finding)) is not None]
    return [finding for finding in kept if not _is_below(finding, groups, jax_of)]


def _is_below(
    finding: Finding, groups: Mapping[tuple[str, ...], list[Finding]], jax_of: Mapping[str, JaxVersions]
) -> bool:
    """Whether a finding only holds for versions below the effective minimum, with which nothing runs anyway."""
    jax = jax_of.get(finding.span.path)
    missing = None if jax is None or finding.code == _CODE else groups.get(jax.versions)
    newest = _newest_without(finding)
    if jax is None or missing is None or newest not in jax.versions:
        return False
    return jax.versions.index(newest) <= max(jax.versions.index(_newest_without(each)) for each in missing)


def _newest_without(finding: Finding) -> str:
    return (finding.jax or "").rpartition(" ")[2]


def _minimum(finding: Finding, others: list[Finding], allowed: tuple[str, ...]) -> Finding:
    first = allowed[allowed.index(_newest_without(finding)) + 1]
    message = f"{finding.message}; the effective minimum is jax {first}"
    places = {other.message: Related(other.span, other.message) for other in reversed(others)}
    if others:
        message += f" ({count_of(len(others), 'more use')} of what the declared one lacks)"
    shown = list(reversed(places.values()))[:_MAX_PLACES]
    return evolve(finding, message=message, related=(*finding.related, *shown))
