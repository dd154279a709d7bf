"""The table of `--statistics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.report import Report


def rows(report: Report) -> list[dict[str, Any]]:
    """{code, name, count, fixable, unsafe} for each rule that fired, by falling count, then code.

    `fixable`: safely; `unsafe`: only by fixes that a person must look at.
    """
    by_code: dict[str, dict[str, Any]] = {}
    for finding in report.findings:
        new = {"code": finding.code, "name": finding.name, "count": 0, "fixable": 0, "unsafe": 0}
        row = by_code.setdefault(finding.code, new)
        row["count"] += 1
        kinds = {fix.applicability for fix in finding.fixes}
        row["fixable"] += "safe" in kinds
        row["unsafe"] += bool(kinds) and "safe" not in kinds
    return sorted(by_code.values(), key=lambda row: (-row["count"], row["code"]))


def render(report: Report) -> Iterator[str]:
    """A line a rule: count, code, how many can be fixed, name. Where that does not fit, what can be fixed is below."""
    counted = rows(report)
    pages = {finding.code: finding.page for finding in report.findings}
    table = [(str(row["count"]), row["code"], row["name"]) for row in counted]
    marks = [_mark(row["fixable"], row["unsafe"]) for row in counted]
    digits = max((len(total) for total, *_ in table), default=0)
    pad = max(map(len, marks), default=0)
    longest = max(
        (digits + len("  ") + len(code) + 2 * len("  ") + pad + len(name) for _, code, name in table), default=0
    )
    if report.width is not None and longest > report.width:
        for (total, code, name), mark in zip(table, marks, strict=True):
            yield f"{total:>{digits}}  {report.style.page(report.style.bold(code), pages[code])}  {name}\n"
            yield f"{' ' * digits}  {mark}\n" if mark else ""
        return
    for (total, code, name), mark in zip(table, marks, strict=True):
        gap = f"  {mark:{pad}}" if pad else ""
        yield f"{total:>{digits}}  {report.style.page(report.style.bold(code), pages[code])}{gap}  {name}\n"


def _mark(fixable: int, unsafe: int) -> str:
    """ "[2 fixable, 1 unsafely]"."""
    parts = [f"{fixable} fixable"] if fixable else []
    parts += [f"{unsafe} unsafely" if fixable else f"{unsafe} fixable unsafely"] if unsafe else []
    return f"[{', '.join(parts)}]" if parts else ""
