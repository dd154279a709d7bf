"""Figures of a cost as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pallas_lint.probe.cost.chips import CHIPS


def device_of(cost: Mapping[str, Any]) -> str:
    return cost["target"].partition(":")[2] or "v5e"


def reached(cost: Mapping[str, Any]) -> float:
    """The share of what the chip could do that is reached: of the matrix unit, or of HBM moving everything once."""
    if not cost["microseconds"]:
        return 0.0
    bandwidth = CHIPS[device_of(cost)].bandwidth * 1e3 * cost["cores"]  # bytes a microsecond
    share: float = min(
        max(cost["units"].get("mxu", 0.0), cost["bytes"]["ideal"] / bandwidth / cost["microseconds"]), 1.0
    )
    return share


UNITS = {
    "mxu": "MXU", "xlu": "XLU", "valu": "VALU", "eup": "EUP", "load": "load", "store": "store", "wait": "waiting",
    "none": "scalar",
}  # fmt: skip


def headline(cost: Mapping[str, Any], *, brief: bool = False) -> str:
    """ "v5e 776 µs · compute-bound · MXU 93 %", `brief` "v5e 776 µs"; "v5e: no cost, it was not compiled for that"."""
    device = device_of(cost)
    if cost["microseconds"] is None:
        return f"{device}: no cost{''.join(f', {doubt}' for doubt in cost['doubts'][:1])}"
    parts = [f"{device} {microseconds(cost['microseconds'])}"]
    if brief:
        return parts[0]
    if cost["bound"] != "unknown":
        parts.append(f"{cost['bound']}-bound")
    unit, share = max(cost["units"].items(), key=lambda each: each[1], default=("", 0.0))
    if share >= 0.01:
        parts.append(f"{UNITS.get(unit, unit)} {100 * share:.0f} %")
    return " · ".join(parts)


def line_text(cost: Mapping[str, Any], line: Mapping[str, Any]) -> str:
    """ "61 % of 776 µs on v5e, mostly MXU": what a line takes."""
    share = f"{100 * line['share']:.0f} %" if line["share"] >= 0.01 else "less than 1 %"
    unit = UNITS.get(line["unit"], line["unit"])
    return f"{share} of {microseconds(cost['microseconds'])} on {device_of(cost)}, mostly {unit}"


def microseconds(value: float) -> str:
    """A time with three digits: "776 µs", "1.23 ms", "301 ns"."""
    if value < 1:
        return f"{value * 1e3:.3g} ns"
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} µs"
