"""Advisories: known defects of jax and libtpu versions, from `data/advisories.json`."""

from __future__ import annotations

import functools
import json
from typing import Literal

from pallas_lint.compat import ranges, tables
from pallas_lint.records import frozen


@frozen
class Advisory:
    """One known defect: which versions have it, which code it concerns, what happens and what to do."""

    id: str
    package: Literal["jax", "libtpu"]
    versions: str  # a PEP 440 range
    code: str
    effect: str
    remedy: str
    reports: tuple[str, ...]  # URLs
    reproduced: str  # with which versions, and how
    rule: str | None  # the code of the rule that finds it; None: no rule can

    def affects(self, version: str) -> bool:
        """Whether a version of the package is in the range; False for text that is no version."""
        try:
            return bool(ranges.within(self.versions, [version]))
        except ValueError:
            return False

    def affected(self, versions: tuple[str, ...]) -> tuple[str, ...]:
        """The versions of the package, out of these, that have the defect."""
        return tuple(version for version in versions if self.affects(version))


@functools.cache
def advisories() -> tuple[Advisory, ...]:
    """All advisories, in the order of the file."""
    content = json.loads((tables.DATA / "advisories.json").read_text(encoding="utf-8"))
    return tuple(Advisory(**{**row, "reports": tuple(row["reports"])}) for row in content["rows"])


@functools.cache
def advisory(identifier: str) -> Advisory:
    """The advisory with this id. Raises KeyError."""
    return {each.id: each for each in advisories()}[identifier]
