"""Clusters of a Mosaic GPU kernel that take over the work of clusters that have not begun."""

from __future__ import annotations

import itertools
from typing import Any

from ...interleaving.events import Signal
from .communication import access
from .references import UNKNOWN, Buffer, Unmodelled, View
from .unroller import Unroller, rule
from .warpgroups import CANCELS, Given, begin, work_of

_MAX_TAKEN = 4  # enough to come back to every slot of two or three


def taken_over(grid: tuple[int, ...], point: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The points of the grid that the cluster there gets: the first one some of the others, and the last one none.

    Which ones a cluster gets is the hardware's choice: all of it is possible.
    """
    if any(point):
        return []
    return list(itertools.islice(itertools.product(*map(range, grid)), 1, 1 + _MAX_TAKEN))


@rule("try_cluster_cancel")
def _try_cancel(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    """All warpgroups of a cluster arrive, the first one queries, and the response goes to all of its blocks."""
    given = Given(run, equation, values, 2)
    work, core = work_of(run, given.place), run.core
    response = given.view(0, "result_transforms_tree")
    barrier = given.view(1, "barrier_transforms_tree")
    axes = given.params.get("collective_axes")
    alone: set[str | None] = {*work.cluster.sizes} if work.cluster.size > 1 else set()
    alone |= {core.axis} if core.count > 1 else set()
    if axes is not None and not alone <= set(axes):  # to 0.10 all of them do it together
        raise Unmodelled("several threads that each cancel a cluster", given.place)
    work.responses[response.region()] = work.requests
    work.requests += 1
    own, size = work.barrier(barrier, given.place), work.cluster.size
    if core.number:
        run.emit(Signal(given.place, run.step, own, size))
        return []
    if work.block:  # it arrives, and so does the response
        run.emit(Signal(given.place, run.step, own, 1))
        return []
    for block in range(size):
        signalled = work.barrier(barrier, given.place, block)
        share = size - 1 if block else size
        begin(run, given.place, [], [(response, block)], signalled, unit=CANCELS, what="cluster cancel", size=share)
    return []


@rule("query_cluster_cancel")
def _query_cancel(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    import numpy as np

    given = Given(run, equation, values, 1)
    response = given.view(0, "transforms_tree")
    access(run, equation, response, writes=False)
    cluster = work_of(run, given.place).cluster
    number = work_of(run, given.place).responses.get(response.region())
    if number is None:
        raise Unmodelled("a response without a request", given.place)
    if number >= len(cluster.others):
        return [*[UNKNOWN] * len(given.params["grid_names"]), np.bool_(False)]
    at = dict(zip(cluster.grid_axes, cluster.others[number]))
    return [*[np.int32(at[name]) if name in at else UNKNOWN for name in given.params["grid_names"]], np.bool_(True)]


@rule("inline_mgpu", "inline_mgpu_p")
def _inline(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    """Code that only returns values orders nothing; other code may wait for other warpgroups, or be a fence."""
    if _is_fence(equation.params.get("mgpu_fn")):
        return []
    if not equation.outvars or any(isinstance(value, Buffer | View) for value in values):
        raise Unmodelled("`inline_mgpu`", run.place(equation))
    return [UNKNOWN] * len(equation.outvars)


def _is_fence(function: Any) -> bool:
    """Whether it is one of the fences around answers in jax's own loop, which order no other memory."""
    code = getattr(function, "__code__", None)
    if getattr(function, "__module__", "") != "jax._src.pallas.mosaic_gpu.helpers" or code is None:
        return False
    closed = dict(zip(code.co_freevars, function.__closure__ or ()))
    return "asm" in closed and str(closed["asm"].cell_contents).startswith("fence.proxy.async::generic.")
