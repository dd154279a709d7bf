"""The verify stage: semaphores and copies on all devices of a mesh, in every possible order."""

from __future__ import annotations

from pathlib import Path

from ...interleaving.events import EventTraces
from ...interleaving.promela import model
from ...interleaving.report import Verdict
from ...interleaving.system import TooLarge
from ...interleaving.verdicts import Verdicts, check_traces
from ...protocol import OnDevices, StageResult
from .. import device_targets
from ..device_traces.launches import blocks_of, lines_of
from ..device_traces.references import Unmodelled
from ..device_traces.unroller import is_communication
from ..launches.launch import Launch


def concerns(launch: Launch) -> bool:
    """Whether a kernel does anything that may happen in several orders."""
    if launch.backend == "mosaic_gpu":
        return any(map(is_communication, launch.primitives - {"run_scoped"}))
    return launch.backend in (None, "tpu") and any("semaphore" in name or "dma" in name for name in launch.primitives)


def examine(launch: Launch, *, modelled: bool, two_cores: bool) -> StageResult:
    """The verdicts; where it is to be `modelled`, the model for spin, too. Raises Missing where there is no model.

    `two_cores`: whether it may run on a chip that has two, and that share the points of a parallel axis out.
    """
    try:
        return _on_gpu(launch) if launch.backend == "mosaic_gpu" else _on_devices(launch, modelled, two_cores)
    except Unmodelled as error:
        raise device_targets.Missing(f"not modelled: {error}{_where(error, launch)}{error.way_out}") from error
    except TooLarge as error:
        raise device_targets.Missing(f"not judged: {error}") from error


def _where(error: Unmodelled, launch: Launch) -> str:
    """The line of what is not modelled, or else that of the launch."""
    place = error.place or launch.place
    if place is None:
        return ""
    near = launch.place is None or place["file"] == launch.place["file"]
    return f" (line {place['line']})" if near else f" ({Path(place['file']).name}, line {place['line']})"


def _on_devices(launch: Launch, modelled: bool, two_cores: bool) -> StageResult:
    lines = lines_of(launch)
    found = check_traces(lines)
    mesh = " x ".join(f"{name} = {size}" for name, size in lines.axes.items()) or "one device"
    detail = f"{mesh}: {_looked_at(lines)}"
    # What the barrier and copies to other devices mean there is not known.
    if two_cores and launch.shared_axis is not None and not (found.found or lines.axes or lines.has_barrier):
        found = _on_two_cores(launch, launch.shared_axis)
        detail += "; two cores, too"
    result = _result_of(found.found, detail, found.steps)
    if modelled:
        try:
            result["model"] = model(lines, launch.kernel)
        except TooLarge as error:
            result["detail"] = f"{detail}; no model: {error}"
    return result


def _on_two_cores(launch: Launch, axis: int) -> Verdicts:
    """The verdicts where two cores share an axis of the grid: never sure, since many chips have one core."""
    found = check_traces(lines_of(launch, shared=axis))
    for each in found.found:
        each.message = f"where two cores (v4, v5p) share axis {axis} of the grid, which is parallel: {each.message}"
        each.sure = False
    return found


def _on_gpu(launch: Launch) -> StageResult:
    steps, details = 0, []
    for lines in blocks_of(launch):
        found = check_traces(lines)
        steps += found.steps
        details.append(_looked_at(lines))
        if found.found:  # those of the other block are the same, as a rule
            return _result_of(found.found, details[-1], steps)
    return _result_of([], "; ".join(dict.fromkeys(details)), steps)


def _looked_at(lines: EventTraces) -> str:
    vague = f", {lines.vague} accesses depend on data and are left out" if lines.vague else ""
    return f"{lines.count} events, every order{vague}"


def _result_of(found: list[Verdict], detail: str, steps: int) -> StageResult:
    problems: list[OnDevices] = [
        {
            "kind": each.kind, "message": each.message, "places": each.places, "sure": each.sure,
            "trace": each.trace, "on_data": each.on_data,
        }
        for each in found
    ]  # fmt: skip
    return {"ok": not problems, "problems": [*problems], "detail": detail, "states": steps}
