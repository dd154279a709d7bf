"""The table of launches with their stages and costs: one row a target, and the dearest lines of the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.probe.cost_report import occupancy
from pallas_lint.probe.cost_report.figures import UNITS, device_of, microseconds, reached
from pallas_lint.report import stages
from pallas_lint.report.style import visible
from pallas_lint.report.wrapping import columns_of, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pallas_lint.report.lines import SourceLine
    from pallas_lint.report.style import Style

_HEAD = ("", "predicted", "range", "bound by", "of the limit", "moved", "ideal", "busiest units", "spills")
_MAX_LINES = 5
_MAX_UNITS = 2
_MAX_COLUMNS, _MIN_COLUMNS = 70, 12  # characters of code beside a line


def paragraphs(
    launches: Iterable[dict[str, Any]], style: Style, source_line: SourceLine, width: int | None
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """One for each launch, or for all that came to the same, which it is given with: documents of the JSON report."""
    alike: dict[str, list[dict[str, Any]]] = {}
    for launch in launches:
        lines = [
            *_fitting([stages.title(launch, style), *stages.lines(launch, style)], width),
            *_of_tpus(launch.get("cost") or [], style, source_line, width),
            *_of_gpus(launch["stages"]),
        ]
        alike.setdefault("\n".join(lines), []).append(launch)
    for text, same in alike.items():
        yield text if len(same) == 1 else f"{text}\n  {style.dim(f'the same for {len(same) - 1} more')}", same


def _fitting(lines: Iterable[str], width: int | None) -> Iterator[str]:
    for line in lines:
        indent = len(line) - len(line.lstrip(" ")) + 2
        yield from wrapped(line, width, 0, indent)


def _of_gpus(gpu_stages: list[dict[str, Any]]) -> Iterator[str]:
    for stage in gpu_stages:
        summary = occupancy.summary(stage.get("figures") or {})
        if summary:
            yield f"  {stage['target']}: {summary}"


def _of_tpus(costs: list[dict[str, Any]], style: Style, source_line: SourceLine, width: int | None) -> Iterator[str]:
    predicted = [cost for cost in costs if cost["microseconds"] is not None]
    if predicted:
        rows = [*map(_row, predicted)]
        table = [*_table([_HEAD, *rows], style.dim)]
        if width is not None and max(map(columns_of, table)) > width:
            pairs = [[f"{name} {cell}" for name, cell in zip(_HEAD[1:], row[1:], strict=True)] for row in rows]
            table = [
                *_fitting((f"  {row[0]}: {', '.join(each)}" for row, each in zip(rows, pairs, strict=True)), width)
            ]
        yield from table
        yield from _lines(predicted[0], style, source_line, width)
    for cost in costs:
        for doubt in cost["doubts"]:
            begin = "" if cost["microseconds"] is not None else "no number: "
            yield f"  {cost['target']}: {begin}{visible(doubt)} ({cost['compiler']})"


def _row(cost: dict[str, Any]) -> tuple[str, ...]:
    low, high = microseconds(cost["low"]), microseconds(cost["high"])
    units = sorted(cost["units"].items(), key=lambda unit: -unit[1])[:_MAX_UNITS]
    return (
        cost["target"],
        microseconds(cost["microseconds"]),
        f"{low} to {high}",
        cost["bound"],
        f"{reached(cost):.0%}",
        format_bytes(cost["bytes"]["read"] + cost["bytes"]["written"]),
        format_bytes(cost["bytes"]["ideal"]),
        ", ".join(f"{UNITS.get(unit, unit)} {share:.0%}" for unit, share in units if share >= 0.005),
        f"{cost['spills']:.0%}",
    )


def _table(rows: Sequence[tuple[str, ...]], dim: Any) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for at, row in enumerate(rows):
        line = "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        yield dim(line) if at == 0 else line


def _lines(cost: dict[str, Any], style: Style, source_line: SourceLine, width: int | None) -> Iterator[str]:
    """Where the time goes, on one target."""
    dearest = cost["lines"][:_MAX_LINES]
    if dearest:
        yield style.dim(f"  on {device_of(cost)}:")
    for line in dearest:
        if line["share"] < 0.005:
            continue
        head = f"  {line['share']:>5.0%}  {UNITS.get(line['unit'], line['unit']):<8} "
        if line["path"]:
            head += f"{visible(line['path'])}:{line['line']}  "
            text = (source_line(line["path"], line["line"]) or "").strip()
            yield head + _cut(
                visible(text), _MAX_COLUMNS if width is None else max(width - columns_of(head), _MIN_COLUMNS)
            )
        else:
            where = "the loop over the grid, its copies and waits"
            yield from wrapped(head + where, width, 0, columns_of(head))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
