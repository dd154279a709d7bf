"""A launch as lines, one for each device of its mesh, or for each core of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from ...interleaving.events import EventTraces
from ..launches.launch import Launch, Operand, kernel_jaxpr
from . import communication, control, forks, scheduling, warpgroups  # noqa: F401  they register operations
from .references import UNKNOWN, Buffer, UnknownValue, Unmodelled
from .scopes import MAX_VALUES, allocate
from .unroller import Core, Unroller

MAX_LINES = 64
MAX_EVENTS = 200_000  # of all lines


def lines_of(launch: Launch, *, shared: int | None = None) -> EventTraces:
    """What each device of the launch's mesh does; with two cores where these share an axis of the grid.

    Raises Unmodelled.
    """
    cores = _cores(launch) if shared is None else [Core(number, 2, None, shared) for number in range(2)]
    lost: frozenset[Any] = frozenset()
    while True:  # until no line relies on what is in memory that another one writes
        lines, runs = _lines(launch, cores, lost)
        sent = {key for run in runs for key in run.sent} - lost
        if not any(run.relied & sent for run in runs):
            return lines
        lost |= sent


def _lines(launch: Launch, cores: list[Core], lost: frozenset[Any]) -> tuple[EventTraces, list[Unroller]]:
    """The events of each device, where the contents of some buffers are not known. Raises Unmodelled."""
    axes = launch.record.axes
    count = math.prod(axes.values()) * len(cores)
    if count > MAX_LINES:
        raise Unmodelled(f"a mesh of {count} devices, more than {MAX_LINES}")
    lines, runs = EventTraces([], [], axes), []
    for device, place in enumerate(itertools.product(*map(range, axes.values()))):
        grid = launch.grid_on(place)
        if grid is None and launch.record.kind == "pallas_call":
            raise Unmodelled("a grid whose bounds depend on data")
        for core in cores:
            run = Unroller(device, core, axes, dict(zip(axes, place)), grid or ())
            run.lost = lost
            _unroll(run, launch)
            runs.append(run)
            lines.lines.append(run.events)
            lines.names.append(f"device {device}" + (f", core {core.number}" if core.count > 1 else ""))
            lines.vague += run.vague
            if lines.count > MAX_EVENTS:
                raise Unmodelled(f"the devices do more than {MAX_EVENTS} things")
    return lines, runs


def blocks_of(launch: Launch) -> Iterator[EventTraces]:
    """What the warpgroups of a cluster of a Mosaic GPU kernel do: of the grid's first cluster, and of the last.

    Others differ from these in what they read and write, as a rule, and not in what they wait for. Raises Unmodelled.
    """
    if launch.record.kind == "pallas_call":
        raise Unmodelled("a `pallas_call`, of which the compiler makes the pipeline")
    meshes: tuple[Any, ...] = launch.record.params.get("meshes") or (launch.record.params.get("mesh"),)
    [mesh, *others] = meshes
    if others or launch.record.axes:
        raise Unmodelled("a kernel on several devices")
    grid, threads = tuple(mesh.grid or ()), mesh.num_threads or 1
    sizes = dict(zip(mesh.cluster_names or (), mesh.cluster or ()))
    if math.prod(sizes.values()) * threads > MAX_LINES:
        raise Unmodelled(f"a cluster of more than {MAX_LINES} warpgroups")
    for point in dict.fromkeys((tuple(0 for _ in grid), tuple(size - 1 for size in grid))):
        cluster = warpgroups.Cluster(grid, point, dict(zip(mesh.grid_names, grid)), sizes)
        cluster.others = scheduling.taken_over(grid, point)
        for run in cluster.begin(threads, mesh.thread_name):
            _unroll(run, launch)
            cluster.vague += run.vague
        lines = EventTraces(cluster.lines, cluster.names, {}, cluster.vague)
        if lines.count > MAX_EVENTS:
            raise Unmodelled(f"the warpgroups do more than {MAX_EVENTS} things")
        yield lines


def _cores(launch: Launch) -> list[Core]:
    """The cores of a device that run the kernel, each for itself."""
    meshes = [mesh for mesh in (launch.record.params.get("mesh"), *launch.record.params.get("meshes", ())) if mesh]
    if not meshes:
        return [Core(0, 1, None)]
    if len(meshes) > 1:
        raise Unmodelled("different kernels on the cores of a device")
    if "Subcore" in type(meshes[0]).__name__:
        raise Unmodelled("a kernel on SparseCores")
    [(axis, count)] = meshes[0].shape.items()
    return [Core(number, count, axis) for number in range(count)]


def _unroll(run: Unroller, launch: Launch) -> None:
    params = launch.record.params
    jaxpr = kernel_jaxpr(params) or params["jaxprs"][0]
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    if launch.record.kind == "pallas_call":
        if jaxpr.constvars:
            raise Unmodelled("a kernel that closes over references")
        buffers: list[Any] = _buffers(launch, jaxpr, run)
        outer: list[Any] = []
    else:  # all that a core_map uses is closed over
        plain = _plain(launch, jaxpr, jaxpr.constvars or jaxpr.invars, run)
        buffers, outer = ([], plain) if jaxpr.constvars else (plain, [])
    known = [value for value in (*buffers, *outer) if isinstance(value, Buffer)]
    run.scopes = {(0, at): buffer.name for at, buffer in enumerate(known)}
    points = itertools.product(*map(range, run.grid)) if run.work is None else (run.point,)
    for point in points:
        if not run.core.runs(point, run.grid):
            continue
        run.point = point
        run.run(jaxpr, list(buffers), outer)


def _plain(launch: Launch, jaxpr: Any, variables: Any, run: Unroller) -> list[Any]:
    """The memory behind references that come without blocks, those to operands first; plain values are unknown."""
    given_names = [str(name) for name in getattr(getattr(jaxpr, "debug_info", None), "arg_names", None) or ()]
    operands = [operand.name for operand in launch.operands]
    names = operands if launch.kernel_place is not None and len(operands) == len(variables) else given_names
    named = len(names) == len(variables)
    values = launch.record.values_on(tuple(run.coordinates.values()) if run.work is None else ())
    written = _written(launch, jaxpr) if run.work is not None else set()
    made: list[Any] = []
    for at, var in enumerate(variables):
        if not hasattr(var.aval, "inner_aval"):
            made.append(UNKNOWN)
            continue
        name = names[at] if named and names[at] else f"reference {at}"
        buffer = allocate(var.aval, ("operand", at), name, run.home, on_gpu=run.work is not None)
        if at < len(values) and at not in written:
            _fill(buffer, var.aval.inner_aval, values[at])
        made.append(buffer)
    return made


def _written(launch: Launch, jaxpr: Any) -> set[int]:
    """The operands that the kernel may write to: of a GPU's, in any of its blocks of threads."""
    variables = (*jaxpr.constvars, *jaxpr.invars)
    found = set(launch.aliases)
    for effect in jaxpr.effects:
        if type(effect).__name__ in ("WriteEffect", "AccumEffect"):
            at = getattr(effect, "input_index", None)
            found |= {at} if at is not None else {k for k, var in enumerate(variables) if var is effect.input}
    return found


def _buffers(launch: Launch, jaxpr: Any, run: Unroller) -> list[Buffer]:
    """The memory behind the kernel's references."""
    made: list[Buffer] = []
    values = launch.record.values_on(tuple(run.coordinates.values()))
    for at, (operand, var) in enumerate(zip(launch.operands, jaxpr.invars, strict=True)):
        buffer = allocate(var.aval, ("operand", at), operand.name, run.home)
        if buffer.semaphore is not None and operand.role != "scratch":
            raise Unmodelled(f"`{operand.name}`, a semaphore that outlives the launch")
        buffer.moves = operand.block is not None and not operand.whole and math.prod(run.grid) > 1
        if operand.role in ("prefetch", "in") and operand.whole:
            ahead = sum(each.role == "prefetch" for each in launch.operands) if operand.role == "in" else 0
            _fill(buffer, var.aval.inner_aval, values[_bounds(launch) + ahead + operand.index])
        made.append(buffer)
    first_output = next((at for at, each in enumerate(launch.operands) if each.role == "out"), len(made))
    for given, result in launch.aliases.items():
        at = given - _bounds(launch)
        if at >= 0 and _in_place(launch.operands[at]) and _in_place(launch.operands[first_output + result]):
            made[first_output + result].key = made[at].key
            made[first_output + result].values = made[at].values
    return made


def _in_place(operand: Operand) -> bool:
    """Whether the kernel sees the array itself, and no block of it."""
    return operand.memory_space in ("any", "hbm") and operand.whole


def _bounds(launch: Launch) -> int:
    """How many operands of the launch are bounds of its grid."""
    return int(launch.record.params["grid_mapping"].num_dynamic_grid_bounds)


def _fill(buffer: Buffer, aval: Any, value: Any) -> None:
    """Set the contents of an operand of the launch that holds integers which steer the kernel."""
    import numpy as np

    size = math.prod(buffer.shape)
    if buffer.semaphore is not None or aval.dtype.kind not in "iub" or size > MAX_VALUES:
        return
    if value is not None and value.size == size:
        buffer.values = value.astype(object).reshape(buffer.shape)
    elif buffer.space in ("smem", "any", "hbm", "gmem"):
        buffer.values = np.full(buffer.shape, UnknownValue(buffer.name), object)
