"""Predicted costs of launches and of their lines, from the schedules of their kernels."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.perf.figures import device_of, headline, line_text, microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.probe.cost.results import Cost, LineCost
    from pallas_lint.probe.results import LaunchResult

_LEAST = 0.005  # of the time


def costs_of_lines(state: DocumentState) -> Iterator[tuple[Cost, LineCost]]:
    """Each line of the document that costs something in a launch that was probed."""
    for run in state.probed:
        for launch in run.launches:
            for cost in launch.costs:
                for line in cost["lines"]:
                    if line["path"] == state.source.path and line["share"] >= _LEAST:
                        yield cost, line


def heat(state: DocumentState) -> dict[str, Any] | None:
    """The answer to `pallasLint/heat`: the lines of each device, the dearest first; None where nothing is known.

    Lines count from 0; one that is in several launches has the share of the one in which it is dearest.
    """
    devices: dict[str, dict[int, tuple[float, str]]] = {}
    for cost, line in costs_of_lines(state):
        lines = devices.setdefault(device_of(cost), {})
        share = min(line["share"], 1.0)
        if share > lines.get(line["line"] - 1, (0.0, ""))[0]:
            lines[line["line"] - 1] = share, line_text(cost, line)
    if not devices:
        return None
    return {
        "devices": [
            {
                "device": device,
                "lines": [
                    {"line": at, "share": share, "text": text}
                    for at, (share, text) in sorted(lines.items(), key=lambda each: -each[1][0])
                ],
            }
            for device, lines in devices.items()
        ]
    }


def cost_text(launches: Iterable[LaunchResult]) -> str:
    """ "v5e 776 µs · compute-bound · MXU 93 %, v6e 372 µs": what a launch costs, of the first target in full."""
    known = next((launch.costs for launch in launches if launch.costs), [])
    return ", ".join(headline(cost, brief=at > 0) for at, cost in enumerate(known))


def brief_costs(launches: Iterable[LaunchResult]) -> str:
    """ "v5e 776 µs compute-bound, v6e 372 µs": the same for a line, without what has no number."""
    known = next((launch.costs for launch in launches if launch.costs), [])
    told = [cost for cost in known if cost["microseconds"] is not None]
    bound = f" {told[0]['bound']}-bound" if told and told[0]["bound"] != "unknown" else ""
    return ", ".join(f"{headline(cost, brief=True)}{'' if at else bound}" for at, cost in enumerate(told))


def cost_before(state: DocumentState, function: str | None) -> str:
    """ "was v5e 776 µs before the edit", of all launches of a function that was changed since."""
    took: dict[str, float] = defaultdict(float)
    run = next((run for run in reversed(state.probed_before) if function and run.function == function), None)
    for cost in (cost for launch in run.launches for cost in launch.costs) if run is not None else ():
        took[device_of(cost)] += cost["microseconds"] or 0.0
    times = ", ".join(f"{device} {microseconds(time)}" for device, time in took.items() if time)
    return f"was {times} before the edit" if times else ""
