"""The last steps of findings before they are shown, in order: the same in the terminal and in editors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.triage.minimum_version import merge_minimum_version_findings
from pallas_lint.triage.repeated_findings import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pallas_lint.config.targets import JaxVersions
    from pallas_lint.finding import Finding


def merged(
    findings: Iterable[Finding], jax_of: Mapping[str, JaxVersions], *, at_each_place: bool = False
) -> list[Finding]:
    """The findings that no baseline hides, with one for those that have one cause.

    `jax_of`: the versions that each file is checked for, by path. `at_each_place`: a removed name is shown wherever it
    is used, as editors do, and not once for all files.
    """
    found = merge_minimum_version_findings(findings, jax_of)
    return found if at_each_place else folded(found)
