"""Sequence charts of a kernel on several devices: a column a device, time goes down."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from pallas_lint.probe.multi_device import findings
from pallas_lint.report.style import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pallas_lint.probe.interleaving.report import Row
    from pallas_lint.probe.results import LaunchResult
    from pallas_lint.report.style import Style

_MAX_CHARTS = 3  # of a launch
_GAP = "   "
_ROW, _MARGIN = 30, 16  # pixels
_LETTER = 7.4  # pixels a letter takes, about


def charts(launch: LaunchResult) -> list[tuple[str, list[Row]]]:
    """What is wrong in words, and the run that shows it, of the first few problems of a launch."""
    traces = [(problem["message"], problem["trace"]) for problem in findings.problems(launch) if problem["trace"]]
    return traces[:_MAX_CHARTS]


def by_finding(launches: Iterable[LaunchResult], style: Style, width: int) -> dict[tuple[str, ...], list[str]]:
    """The lines of the charts, not wider than `width` columns, by the code, the kernel and the message of a finding."""
    found: dict[tuple[str, ...], list[str]] = {}
    for launch in launches:
        drawn = [problem for problem in findings.problems(launch) if len(problem["trace"]) > 1]
        for problem in drawn[:_MAX_CHARTS]:
            key = (findings.code_of(launch, problem), launch.kernel, problem["message"])
            found.setdefault(key, [line.rstrip() for line in _drawn(problem["trace"], style, width)])
    return found


def _drawn(rows: Sequence[Row], style: Style, width: int) -> Iterator[str]:
    devices = sorted({row["device"] for row in rows})
    names = _names(rows)
    texts = [visible(_text(row)) for row in rows]
    widths = [
        max(
            len(names[device]),
            *(len(text) for row, text in zip(rows, texts, strict=True) if row["device"] == device),
        )
        for device in devices
    ]
    if sum(widths) + len(_GAP) * (len(widths) - 1) > width:  # a list takes less than columns
        ahead = max(map(len, names.values()))
        for row, text in zip(rows, texts, strict=True):
            yield f"{style.dim(names[row['device']].ljust(ahead))}  {text}"
        return
    yield style.dim(_GAP.join(names[device].ljust(size) for device, size in zip(devices, widths, strict=True)))
    for row, text in zip(rows, texts, strict=True):
        cells = [
            (text if device == row["device"] else "").ljust(size) for device, size in zip(devices, widths, strict=True)
        ]
        line = _GAP.join(cells)
        yield style.bold(line) if row.get("note") else line


def _names(rows: Sequence[Row]) -> dict[int, str]:
    """What the columns are called."""
    numbers = {row["device"] for row in rows} | {row["to"] for row in rows if "to" in row}
    return {number: f"device {number}" for number in sorted(numbers)} | {
        row["device"]: row["name"] for row in rows if "name" in row
    }


def _text(row: Row) -> str:
    """One event: what, where it goes, in which line and step, and why it matters."""
    parts = [row["what"]]
    to = row.get("to")
    if to is not None and not row["what"].startswith("copy"):
        parts.append(f"of device {to}")
    if row["line"] is not None:
        parts.append(f":{row['line']}")
    if row.get("step"):
        parts.append(f"({row['step']})")
    if row.get("note"):
        parts.append(f"<- {row['note']}")
    return " ".join(parts)


def section(launch: LaunchResult) -> str:
    """For the HTML report and the panel: drawings in which one can go to the lines."""
    drawn = charts(launch)
    if not drawn:
        return ""
    figures = []
    for message, rows in drawn:
        caption = f"<figcaption>{escape(message.replace('`', ''))}</figcaption>"
        figures.append(f'<figure>{caption}<div class="wide">{_svg(rows)}</div></figure>')
    title = "Between warpgroups" if launch.facts["backend"] == "mosaic_gpu" else "On several devices"
    return f"<h3>{title}</h3>{''.join(figures)}"


def _svg(rows: Sequence[Row]) -> str:
    names = _names(rows)
    devices, columns = sorted(names), ", ".join(names.values())
    # Whatever goes to the right stands beside its arrow; a column is as wide as what stands in it.
    wide = {
        device: max([90.0, *(len(_text(row)) * _LETTER + 24 for row in rows if row["device"] == device)])
        for device in devices
    }
    left: dict[int, float] = {}
    x = float(_MARGIN)
    for device in devices:
        left[device] = x
        x += wide[device]
    height = _ROW * (len(rows) + 2)
    parts = [
        f'<svg class="devices" width="{x + _MARGIN:.0f}" height="{height}" viewBox="0 0 {x + _MARGIN:.0f} {height}" '
        f'role="img" aria-label="{len(rows)} events of {escape(columns)}">'
    ]
    for device, at in left.items():
        parts.append(f'<text class="name" x="{at:.0f}" y="18">{escape(names[device])}</text>')
        parts.append(f'<line class="life" x1="{at:.0f}" x2="{at:.0f}" y1="26" y2="{height - 8}"/>')
    for number, row in enumerate(rows):
        parts.append(_event(row, left, 26 + _ROW * (number + 1)))
    return "".join(parts) + "</svg>"


def _event(row: Row, left: dict[int, float], y: int) -> str:
    x = left[row["device"]]
    look = "event bad" if row.get("note") else "event"
    arrow = ""
    if "to" in row:
        to = left[row["to"]]
        tip = -5 if to > x else 5
        arrow = (
            f'<line class="arrow" x1="{x:.0f}" x2="{to:.0f}" y1="{y}" y2="{y}"/>'
            f'<path class="tip" d="M{to:.0f} {y} l{tip} -3 v6 z"/>'
        )
    place = ""
    if row["line"] is not None and "path" in row:
        place = f' data-path="{escape(row["path"])}" data-line="{row["line"]:d}"'
    title = f"<title>{escape(Path(row['path']).name)}:{row['line']}</title>" if "path" in row else ""
    return (
        f'<g class="{look} place"{place}>{title}{arrow}<circle cx="{x:.0f}" cy="{y}" r="3.5"/>'
        f'<text x="{x + 8:.0f}" y="{y - 6}">{escape(_text(row))}</text></g>'
    )
