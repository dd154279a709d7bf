"""Replacements: new names for old ones, and substitutes for functions that a backend cannot lower."""

from __future__ import annotations

import functools
from typing import Any, Literal

from pallas_lint.compat import tables
from pallas_lint.compat.apis import api, parameters
from pallas_lint.records import frozen

How = Literal["rename", "move", "keyword", "manual"]


@frozen
class ApiReplacement:
    """One old name, or one old keyword of a name, and what took its place."""

    old: str
    """Canonical old name; the callable's where `keyword` is given."""
    keyword: str | None
    """The old keyword, if only that went."""
    new: str | None
    """Canonical new name, or the new keyword; None if nothing took its place."""
    how: How
    """rename: same module; move: another module; keyword: another keyword; manual: a person must look."""
    safe: bool
    """Whether the meaning is kept, so that the edit needs no review."""
    note: str
    """What to do, in one sentence."""
    source: str
    """The source in jax."""
    gone_before: str | None = None
    """Set where the old name had gone already in this, the oldest known version."""

    def available_in(self, version: str) -> bool:
        """Whether what took its place can be used in this version; True where nothing did."""
        if self.new is None:
            return True
        if "." in self.new:
            new = api(self.new)
            return new is not None and new.present_in(version)
        taken = parameters(self.old, version)
        return taken is not None and taken.accepts(self.new)


@functools.cache
def replacements() -> tuple[ApiReplacement, ...]:
    """Every known replacement."""
    return tuple(_row(row) for row in tables.advice()["replacements"])


def _row(row: dict[str, Any]) -> ApiReplacement:
    return ApiReplacement(
        row["old"],
        row.get("keyword"),
        row.get("new"),
        row["how"],
        row.get("safe", False),
        row["note"],
        row["source"],
        row.get("gone_before"),
    )


@functools.cache
def _index() -> dict[tuple[str, str | None], tuple[ApiReplacement, ...]]:
    found: dict[tuple[str, str | None], tuple[ApiReplacement, ...]] = {}
    for row in replacements():
        key = (row.old, row.keyword)
        found[key] = (*found.get(key, ()), row)
    return found


def replacement(name: str, keyword: str | None = None, version: str | None = None) -> ApiReplacement | None:
    """What took the place of a name, or of a keyword of it; None if nothing is recorded.

    Some names were replaced twice: with a version, the one whose new name that version has comes first.
    """
    rows = _index().get((name, keyword), ())
    if version is not None:
        for row in rows:
            if row.available_in(version):
                return row
    return rows[0] if rows else None


def substitutes(name: str, backend: str) -> tuple[str, ...]:
    """What kernels write instead of a function that this backend cannot lower, the usual one first."""
    found: list[str] = []
    for row in tables.advice()["substitutes"]:
        if name in row["names"] and backend in row.get("backends", (backend,)):
            found.extend(row["instead"])
    return tuple(found)
