"""Predicted costs of launches and of their lines, from the schedules of their kernels."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.cost_report.figures import device_of, headline, line_text, microseconds
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.probe.cost.results import Cost
    from pallas_lint.probe.results import LaunchResult

_MIN_SHARE = 0.005  # of the time
_LEAST_REST = 0.05  # ... that is of no line of the kernel
_MAX_NAMES = 3  # operands


@frozen
class LineShare:
    """What a line of the document, from 1, takes of the time of a launch on a device, and the text beside it."""

    device: str
    line: int
    share: float
    text: str


def costs_of_lines(state: DocumentState) -> Iterator[LineShare]:
    """Each line of the document that costs something in a launch that was probed; the launch for what is of no line."""
    path = state.source.path
    for launch in (launch for run in state.probed for launch in run.launches):
        for cost in (cost for cost in launch.costs if cost["microseconds"]):
            for line in cost["lines"]:
                if line["path"] == path and line["share"] >= _MIN_SHARE:
                    yield LineShare(device_of(cost), line["line"], min(line["share"], 1.0), line_text(cost, line))
            place, rest = launch.facts["place"], _rest(launch, cost)
            if place is not None and place["file"] == path and rest is not None:
                yield LineShare(device_of(cost), place["line"], *rest)


def _rest(launch: LaunchResult, cost: Cost) -> tuple[float, str] | None:
    """The share of the time that goes by outside of the kernel's lines, and where; None where it is next to none."""
    share = 1.0 - sum(line["share"] for line in cost["lines"] if line["path"] is not None)
    if share < _LEAST_REST:
        return None
    names = [each["name"] for each in launch.facts["operands"] if each["role"] in ("in", "out")]
    listed = ", ".join(names[:_MAX_NAMES]) + (", …" if names[_MAX_NAMES:] else "")
    where = {"memory": f"copies of {listed}", "latency": "the steps of the grid themselves, whatever they do"}
    with_time = where.get(cost["bound"], "copies and the steps of the grid, in no line of the kernel")
    return (
        share,
        f"{100 * share:.0f} % of {microseconds(cost['microseconds'] or 0.0)} on {device_of(cost)}: {with_time}",
    )


def heat(state: DocumentState) -> dict[str, Any] | None:
    """The answer to `pallasLint/heat`: the lines of each device, the dearest first; None where nothing is known.

    Lines count from 0; one that is in several launches has the share of the one in which it is dearest.
    """
    devices: dict[str, dict[int, tuple[float, str]]] = {}
    for each in costs_of_lines(state):
        lines = devices.setdefault(each.device, {})
        if each.share > lines.get(each.line - 1, (0.0, ""))[0]:
            lines[each.line - 1] = each.share, each.text
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
    with_time = [cost for cost in known if cost["microseconds"] is not None]
    bound = f" {with_time[0]['bound']}-bound" if with_time and with_time[0]["bound"] != "unknown" else ""
    return ", ".join(f"{headline(cost, brief=True)}{'' if at else bound}" for at, cost in enumerate(with_time))


def compared_costs(state: DocumentState, function: str | None) -> str:
    """ "v5e: attention 41 µs, plain 46 µs": a whole function, and the one that a comment names as its reference."""
    run = next((run for run in reversed(state.probed) if function and run.function == function), None)
    return ", ".join(
        f"{device_of(cost)}: {cost['function']} {microseconds(cost['microseconds'])}, "
        f"{other['function'].rpartition('::')[2]} {microseconds(other['microseconds'])}"
        for cost in (run.functions if run is not None else ())
        if cost["microseconds"] and (other := cost["against"]) is not None and other["microseconds"]
    )


def cost_before(state: DocumentState, function: str | None) -> str:
    """ "was v5e 776 µs before the edit", of all launches of a function that was changed since."""
    took: dict[str, float] = defaultdict(float)
    run = next((run for run in reversed(state.probed_before) if function and run.function == function), None)
    for cost in (cost for launch in run.launches for cost in launch.costs) if run is not None else ():
        took[device_of(cost)] += cost["microseconds"] or 0.0
    times = ", ".join(f"{device} {microseconds(time)}" for device, time in took.items() if time)
    return f"was {times} before the edit" if times else ""
