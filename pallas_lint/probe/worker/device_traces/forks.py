"""Warpgroups of a Mosaic GPU kernel that fork into warps."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ...interleaving.events import Semaphore, Signal, Wait
from .references import UNKNOWN, Unmodelled
from .unroller import Unroller, rule
from .warpgroups import Work, work_of

_WARPS = 4  # of a warpgroup


@rule("mpmd_map", "core_map")
def _warps(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    """A warpgroup forks into its warps, and goes on when all of them are through."""
    place = run.place(equation)
    work = work_of(run, place)
    meshes = equation.params.get("meshes") or (equation.params.get("mesh"),)
    jaxprs = equation.params.get("jaxprs") or (equation.params.get("jaxpr"),)
    if len(meshes) != 1 or type(meshes[0]).__name__ != "WarpMesh" or run.axes.get(meshes[0].axis_name):
        raise Unmodelled("a kernel in a kernel", place)
    jaxpr = getattr(jaxprs[0], "jaxpr", jaxprs[0])
    axis = meshes[0].axis_name
    fork, join = work.semaphore(run.line, "warps begin"), work.semaphore(run.line, "warps end")
    run.emit(Signal(place, run.step, fork, 1))
    waits: dict[Semaphore, int] = defaultdict(int)
    warps: list[Work] = []
    for warp in range(_WARPS):
        own = work.cluster.line(
            work.block, f"{work.cluster.names[run.line]}, warp {warp}", run.core,
            {**run.axes, axis: _WARPS}, {**run.coordinates, axis: warp},
        )  # fmt: skip
        own.within(run)
        assert own.work is not None
        own.work.waits.update(work.waits)
        if warp == 0:  # one of its threads stores for the warpgroup
            own.work.groups, own.work.stores = [*work.groups], [*work.stores]
        warps.append(own.work)
        own.emit(Wait(place, run.step, fork, 1, takes=False))
        if jaxpr.constvars:
            own.run(jaxpr, [], values)
        else:
            own.run(jaxpr, values)
        own.emit(Signal(place, run.step, join, 1))
        work.cluster.vague += own.vague
        for barrier, count in own.work.waits.items():
            waits[barrier] = max(waits[barrier], count)
    work.waits.update(waits)
    work.take_over(warps)
    run.emit(Wait(place, run.step, join, _WARPS, takes=False))
    return [UNKNOWN] * len(equation.outvars)
