"""Judge what a kernel does with semaphores and copies, on all devices of its mesh, in every order that can happen."""

from __future__ import annotations

from pathlib import Path

from ...devices.promela import model
from ...devices.system import TooMuch
from ...devices.verdicts import judge
from ...protocol import OnDevices, Outcome
from .. import devices
from ..launches.launch import Launch
from ..unrolling.launches import lines_of
from ..unrolling.references import Unmodelled


def concerns(launch: Launch) -> bool:
    """Whether a kernel does anything that may happen in several orders."""
    return launch.backend in (None, "tpu") and any("semaphore" in name or "dma" in name for name in launch.primitives)


def examine(launch: Launch, folder: str | None, at: int) -> Outcome:
    """The verdicts; with a `folder`, the model is left there for spin. Raises Missing where there is no model."""
    try:
        lines = lines_of(launch)
    except Unmodelled as error:
        where = f" (line {error.place['line']})" if error.place else ""
        raise devices.Missing(f"not modelled: {error}{where}") from error
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = f"{launch.kernel}-{at}"
        Path(folder, f"{name}.pml").write_text(model(lines, name), encoding="utf-8")
    try:
        found = judge(lines)
    except TooMuch as error:
        raise devices.Missing(f"not judged: {error}") from error
    problems: list[OnDevices] = [
        {"kind": each.kind, "message": each.message, "places": each.places, "sure": each.sure, "trace": each.trace}
        for each in found.found
    ]
    mesh = " x ".join(f"{name} = {size}" for name, size in lines.axes.items()) or "one device"
    vague = f", {lines.vague} accesses hang on data and are left out" if lines.vague else ""
    detail = f"{mesh}: {lines.count} events, every order{vague}"
    return {"ok": not problems, "problems": [*problems], "detail": detail, "states": found.steps}
