"""The table of `--statistics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.report import Report


def rows(report: Report) -> list[dict[str, Any]]:
    """{code, name, count, fixable} for each rule that fired, by falling count, then code."""
    by_code: dict[str, dict[str, Any]] = {}
    for finding in report.findings:
        new = {"code": finding.code, "name": finding.name, "count": 0, "fixable": 0}
        row = by_code.setdefault(finding.code, new)
        row["count"] += 1
        row["fixable"] += bool(finding.fixes)
    return sorted(by_code.values(), key=lambda row: (-row["count"], row["code"]))


def render(report: Report) -> Iterator[str]:
    """A line a rule: count, code, how many can be fixed, name."""
    table = [(str(row["count"]), row["code"], row["fixable"], row["name"]) for row in rows(report)]
    marks = [f"[{fixable} fixable]" if fixable else "" for _, _, fixable, _ in table]
    digits = max((len(total) for total, *_ in table), default=0)
    pad = max(map(len, marks), default=0)
    for (total, code, _, name), mark in zip(table, marks, strict=True):
        gap = f"  {mark:{pad}}" if pad else ""
        yield f"{total:>{digits}}  {report.style.bold(code)}{gap}  {name}\n"
