"""Findings about what a launch costs: only where something can be done, and never more than infos."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pallas_lint.finding import Severity
from pallas_lint.probe.cost.chips import CHIPS
from pallas_lint.probe.perf.figures import device_of, microseconds, reached, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.probe.cost.told import Cost
    from pallas_lint.probe.places import Around
    from pallas_lint.probe.protocol import Place
    from pallas_lint.probe.results import LaunchResult

_FEW = 8  # steps; of fewer nothing can be saved by making them larger
_AROUND = 0.25  # of the time, spent around the lines of the kernel
_FAR = 2.0  # times the limit of the chip
_MOVED = 1.25  # times the bytes that would do
_SPILLED = 0.1  # of the stores
_STORING = 0.05  # of all store slots, taken by what is spilled
_FULL = 0.8  # of the matrix unit: nothing beside it matters
_CROSSING = 0.2  # of the time


def findings(launch: LaunchResult, about: Around) -> Iterator[Finding]:
    """What could be faster, by target."""
    for cost in launch.costs:
        if cost["microseconds"] is not None:
            for code, message, help, place in _told(launch, cost):
                places = [place] if place is not None else ()
                yield about.placed(places, code, Severity.INFO, message, help, backend="tpu", device=device_of(cost))


def _told(launch: LaunchResult, cost: Cost) -> Iterator[tuple[str, str, str, Place | None]]:
    """Code, message, help, and the line where there is one."""
    took = cost["microseconds"]
    assert took is not None
    moved, ideal = cost["bytes"]["read"] + cost["bytes"]["written"], cost["bytes"]["ideal"]
    mxu, steps = cost["units"].get("mxu", 0.0), cost["steps"]
    around = sum(line["share"] for line in cost["lines"] if line["path"] is None)
    if cost["bound"] == "latency" and around >= _AROUND and steps >= _FEW and reached(cost) * _FAR < 1:
        yield (
            "PAL801",
            f"{around:.0%} of the predicted {microseconds(took)} are the cost of {steps} steps themselves: one takes "
            f"{microseconds(took / steps)}, with {size(moved / steps)} to move",
            "give each step more to do: larger blocks make fewer steps (`--tune` tries sizes)",
            None,
        )
    if cost["bound"] == "memory" and ideal and moved > _MOVED * ideal:
        yield (
            "PAL802",
            f"of the predicted {microseconds(took)} most is waiting for memory: {size(moved)} are moved, and "
            f"{size(ideal)} would do",
            "larger blocks, and an order of the grid in which blocks stay the same for longer, fetch less again",
            None,
        )
    spilled = cost["spills"] * cost["units"].get("store", 0.0)
    if cost["bound"] == "compute" and cost["spills"] > _SPILLED and spilled > _STORING and mxu < _FULL:
        yield (
            "PAL804",
            f"{cost['spills']:.0%} of the stores only save registers that run out",
            "less at a time: smaller blocks, or a loop over parts of a block",
            None,
        )
    for line in cost["lines"] if cost["bound"] == "compute" else ():  # else it happens while others wait
        if line["unit"] == "xlu" and line["share"] >= _CROSSING and line["path"] is not None:
            place: Place = {"file": line["path"], "line": line["line"]}
            yield (
                "PAL805",
                f"{line['share']:.0%} of the predicted {microseconds(took)} go here, to moving values across lanes",
                "slices, concatenations and reshapes at multiples of 128 move nothing; nor do transposes that a dot "
                "or an index map makes",
                place,
            )
    parallel = "parallel" in (launch.facts.get("semantics") or ())
    if CHIPS[device_of(cost)].cores > cost["cores"] and math.prod(launch.facts["grid"] or ()) > 1 and not parallel:
        yield (
            "PAL810",
            f"one of the two cores of {device_of(cost)} is idle: no axis of the grid is said to be parallel",
            'dimension_semantics=("parallel", ...) for axes along which no step needs what another one wrote',
            None,
        )
