"""The table of `--statistics`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.report import Report


def _rows(report: Report) -> list[tuple[str, str, int, int]]:
    """(code, name, count, fixable) by falling count, then code."""
    rows: dict[tuple[str, str], list[int]] = {}
    for finding in report.findings:
        row = rows.setdefault((finding.code, finding.name), [0, 0])
        row[0] += 1
        row[1] += bool(finding.fixes)
    ordered = sorted(rows.items(), key=lambda item: (-item[1][0], item[0]))
    return [(code, name, total, fixable) for (code, name), (total, fixable) in ordered]


def render(report: Report) -> Iterator[str]:
    """A line a rule: count, code, how many can be fixed, name."""
    rows = _rows(report)
    digits = max((len(str(row[2])) for row in rows), default=0)
    marks = [f"[{fixable} fixable]" if fixable else "" for *_, fixable in rows]
    pad = max(map(len, marks), default=0)
    for (code, name, total, _), mark in zip(rows, marks, strict=True):
        gap = f"  {mark:{pad}}" if pad else ""
        yield f"{total:>{digits}}  {report.style.bold(code)}{gap}  {name}\n"


def render_json(report: Report) -> Iterator[str]:
    """The same as a JSON array."""
    rows = [{"code": c, "name": n, "count": total, "fixable": fixable} for c, n, total, fixable in _rows(report)]
    yield json.dumps(rows, indent=2) + "\n"
