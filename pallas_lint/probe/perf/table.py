"""What launches cost, as tables: one row a target, and the dearest lines of the first one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.perf import occupancy
from pallas_lint.probe.perf.figures import UNITS, device_of, microseconds, reached, size
from pallas_lint.report.style import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pallas_lint.report.lines import SourceLine
    from pallas_lint.report.style import Style

_HEAD = ("", "predicted", "range", "bound by", "of the limit", "moved", "ideal", "busiest units", "spills")
_MOST_LINES = 5
_MOST_UNITS = 2


def paragraphs(launches: Iterable[dict[str, Any]], style: Style, source_line: SourceLine) -> Iterator[str]:
    """One for each launch of which it was asked what it costs. `launches` are documents of the contract."""
    for launch in launches:
        lines = [*_of_tpus(launch.get("cost") or [], style, source_line), *_of_gpus(launch["stages"])]
        if lines:
            yield "\n".join([_title(launch, style), *lines])


def _title(launch: dict[str, Any], style: Style) -> str:
    where = f"{visible(launch['path'])}:{launch['line']}: " if launch["path"] else ""
    steps = math.prod(launch["grid"] or ())
    return f"{style.path(where)}{style.bold(visible(launch['kernel']))}, {steps:,} step{'s' * (steps != 1)}"


def _of_gpus(stages: list[dict[str, Any]]) -> Iterator[str]:
    for stage in stages:
        told = occupancy.told(stage.get("figures") or {})
        if told:
            yield f"  {stage['target']}: {told}"


def _of_tpus(costs: list[dict[str, Any]], style: Style, source_line: SourceLine) -> Iterator[str]:
    told = [cost for cost in costs if cost["microseconds"] is not None]
    if told:
        yield from _table([_HEAD, *map(_row, told)], style.dim)
        yield from _lines(told[0], style, source_line)
    for cost in costs:
        for doubt in cost["doubts"]:
            begin = "" if cost["microseconds"] is not None else "no number: "
            yield f"  {cost['target']}: {begin}{visible(doubt)} ({cost['compiler']})"


def _row(cost: dict[str, Any]) -> tuple[str, ...]:
    low, high = microseconds(cost["low"]), microseconds(cost["high"])
    units = sorted(cost["units"].items(), key=lambda unit: -unit[1])[:_MOST_UNITS]
    return (
        cost["target"],
        microseconds(cost["microseconds"]),
        f"{low} to {high}",
        cost["bound"],
        f"{reached(cost):.0%}",
        size(cost["bytes"]["read"] + cost["bytes"]["written"]),
        size(cost["bytes"]["ideal"]),
        ", ".join(f"{UNITS.get(unit, unit)} {share:.0%}" for unit, share in units if share >= 0.005),
        f"{cost['spills']:.0%}",
    )


def _table(rows: Sequence[tuple[str, ...]], dim: Any) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for at, row in enumerate(rows):
        line = "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield dim(line) if at == 0 else line


def _lines(cost: dict[str, Any], style: Style, source_line: SourceLine) -> Iterator[str]:
    """Where the time goes, on one target."""
    dearest = cost["lines"][:_MOST_LINES]
    if dearest:
        yield style.dim(f"  on {device_of(cost)}:")
    for line in dearest:
        if line["share"] < 0.005:
            continue
        where = "the loop over the grid, its copies and waits"
        if line["path"]:
            text = (source_line(line["path"], line["line"]) or "").strip()
            where = f"{visible(line['path'])}:{line['line']}  {visible(text[:70])}"
        yield f"  {line['share']:>5.0%}  {UNITS.get(line['unit'], line['unit']):<8} {where}"
