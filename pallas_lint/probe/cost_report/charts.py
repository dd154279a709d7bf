"""SVG charts of a cost: distance from the chip's limits, and a timeline of the first steps."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.probe.cost.chips import CHIPS, LIKELY
from pallas_lint.probe.cost_report.figures import device_of, microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.probe.cost.results import Cost

_WIDTH = 640  # pixels
_MIN_SHARE = 0.005  # of the matrix unit
_FLOP_A_BYTE, _RATES = 4, 4  # powers of ten on each axis, from 1 on


def roofline(costs: Sequence[Cost]) -> str:
    """Each target's roof, and where the launch is below it: FLOP a byte moved against TFLOP/s.

    Both are those of the matrix unit, by its busy slots. Empty where it does nothing.
    """
    points = [(cost, *_at(cost)) for cost in costs if cost["units"].get("mxu", 0.0) >= _MIN_SHARE]
    if not points:
        return ""
    height, left, bottom, margin = 260, 56, 34, 12

    def across(intensity: float) -> float:
        return left + _share(intensity, _FLOP_A_BYTE) * (_WIDTH - left - margin)

    def up(rate: float) -> float:
        return height - bottom - _share(rate, _RATES) * (height - bottom - margin)

    drawn = []
    for power in range(_FLOP_A_BYTE + 1):
        x = across(10.0**power)
        drawn.append(_rule(x, margin, x, height - bottom))
        anchor = "middle" if power < _FLOP_A_BYTE else "end"
        drawn.append(_text(x, height - bottom + 16, f"{10**power:,}", anchor))
    for power in range(_RATES):
        y = up(10.0**power)
        drawn.append(_rule(left, y, _WIDTH - margin, y))
        drawn.append(_text(left - 6, y + 4, f"{10**power:,}", "end"))
    labels = []
    for at, (cost, intensity, rate) in enumerate(points):
        chip, look = CHIPS[device_of(cost)], f"part{at % 6}"
        peak, bandwidth = chip.peak * cost["cores"], chip.bandwidth * cost["cores"] / 1e3  # TFLOP/s, TB/s
        roof = ((1.0, bandwidth), (peak / bandwidth, peak), (10.0**_FLOP_A_BYTE, peak))
        corners = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in roof)
        labels.append(f"{device_of(cost)} {rate:.3g} of {peak:.4g} TFLOP/s at {intensity:.0f} FLOP a byte")
        drawn.append(f'<polyline class="{look} roof" points="{corners}"/>')
        x, y = across(intensity), up(rate)
        drawn.append(f'<circle class="{look}" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{labels[-1]}</title></circle>')
        # On both sides by turns: neighbours do not cover each other.
        drawn.append(_text(x + (-9 if at % 2 else 9), y + 4, device_of(cost), "end" if at % 2 else "start", "name"))
    drawn.append(_text((_WIDTH + left) / 2, height - 4, "FLOP of the matrix unit a byte moved", "middle"))
    drawn.append(_text(left, 9, "TFLOP/s", "end"))
    return f"<h4>Roofline</h4>{_chart(height, 'Roofline: ' + '; '.join(labels), drawn)}"


def _at(cost: Cost) -> tuple[float, float]:
    """FLOP a byte moved, and TFLOP/s: what the busy slots of the matrix unit do in bfloat16."""
    rate = cost["units"]["mxu"] * CHIPS[device_of(cost)].peak * cost["cores"]
    moved = max(cost["bytes"]["read"] + cost["bytes"]["written"], 1)
    return rate * 1e6 * (cost["microseconds"] or 0.0) / moved, rate


def _share(value: float, powers: int) -> float:
    """Where a value stands on an axis from 1 to a power of ten."""
    return min(max(math.log10(max(value, 1.0)) / powers, 0.0), 1.0)


def first_steps(cost: Cost) -> str:
    """Copies against computing, from the beginning on; empty where nothing is copied."""
    copies, waits = cost["pipeline"]["copies"], sorted(cost["pipeline"]["waits"])
    end = max((done for _, _, done, _, _ in copies), default=0)
    if not end:
        return ""
    chip = CHIPS[device_of(cost)]
    left, row = 76, 24

    def time(cycles: float) -> str:
        return microseconds(cycles / chip.clock / 1e3)

    def bar(lane: int, begin: float, until: float, look: str, title: str) -> str:
        first, last = (left + min(max(each / end, 0.0), 1.0) * (_WIDTH - left - 4) for each in (begin, until))
        where = f'x="{first:.1f}" y="{lane * row + 4}" width="{max(last - first, 0.75):.1f}" height="16"'
        return f'<rect class="{look}" {where}><title>{escape(title)}</title></rect>'

    drawn = [_text(0, lane * row + 16, name, "start") for lane, name in enumerate(("copies in", "copies out", "core"))]
    computes = 0
    for begin, until in (*waits, (end, end)):
        if begin > computes:
            drawn.append(bar(2, computes, begin, "part0", f"computes for {time(begin - computes)}"))
        if until > begin:
            drawn.append(bar(2, begin, until, "waiting", f"waits for {time(until - begin)}"))
        computes = max(computes, until)
    latency = LIKELY.latency * chip.clock
    for issued, moves, done, moved, out in copies:
        title = f"{format_bytes(moved)}, asked for at {time(issued)}, done after {time(done - issued)}"
        drawn.append(bar(int(out), moves, max(done - latency, moves), "part1" if out else "part2", title))
    for quarter, anchor in enumerate(("start", "middle", "middle", "middle", "end")):
        x = left + quarter / 4 * (_WIDTH - left - 4)
        drawn.append(_text(x, 3 * row + 16, time(end * quarter / 4) if quarter else "0", anchor))
    chart = _chart(3 * row + 24, f"When bytes move and when the core waits, in the first {time(end)}", drawn)
    return (
        f"<h4>The first steps on {escape(device_of(cost))}</h4>{chart}"
        '<p class="quiet">Copies while their bytes move; the core computes (filled) or waits (dashed).</p>'
    )


def _chart(height: int, label: str, drawn: Sequence[str]) -> str:
    box = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
    chart = f'<svg class="chart" {box} role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'
    return f'<div class="wide">{chart}</div>'


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<line class="rule" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, look: str = "") -> str:
    known = f' class="{look}"' if look else ""
    return f'<text{known} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
