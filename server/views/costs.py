"""What lines cost, as predicted of the schedules of their kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.probe.perf.figures import device_of, line_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.server.workspace.judged import Judged

    from pallas_lint.probe.cost.told import Cost, LineCost

_LEAST = 0.005  # of the time


def costs_of_lines(judged: Judged) -> Iterator[tuple[Cost, LineCost]]:
    """Each line of the document that costs something in a launch that was probed."""
    for run in judged.probed:
        for launch in run.launches:
            for cost in launch.costs:
                for line in cost["lines"]:
                    if line["path"] == judged.source.path and line["share"] >= _LEAST:
                        yield cost, line


def heat(judged: Judged) -> dict[str, Any] | None:
    """The answer to `pallasLint/heat`: the lines of each device, the dearest first; None where nothing is known.

    Lines count from 0; one that is in several launches has the share of the one in which it is dearest.
    """
    devices: dict[str, dict[int, tuple[float, str]]] = {}
    for cost, line in costs_of_lines(judged):
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
