"""Named axes along which the kernel of a launch runs: their sizes, and what scalars are at one place on them."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from pallas_lint.identity import iter_unique
from pallas_lint.kernels.facts.devices import DevicePoint
from pallas_lint.kernels.facts.shared_memory import SPECIALISED
from pallas_lint.kernels.grid.grid_points import loops_in
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.values import NONE, Array, CallResult, Const, Seq, Slice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace, Op
    from pallas_lint.kernels.model.values import Value

AXIS_INDEX = "jax.lax.axis_index"
_GPU_KERNEL = f"{PALLAS}.mosaic_gpu.kernel"
_GPU_MESH = f"{PALLAS}.mosaic_gpu.Mesh"
_MAX_POINTS = 4096  # places on the axes times steps of loops


def gpu_axes(launch: Launch, *, warpgroups: bool = True) -> dict[str, int | None] | None:
    """The axes of a Mosaic GPU launch, of its grid, cluster and warpgroups, with their sizes where these are known.

    None where the names are not known, and for other launches.
    """
    declared = _declaration(launch)
    if declared is None or declared.open:
        return None
    names = [*_items(declared.argument("grid_names")), *_items(declared.argument("cluster_names"))]
    sizes = [*_items(declared.argument("grid")), *_items(declared.argument("cluster"))]
    if warpgroups and declared.argument("thread_name") not in (None, NONE):
        names.append(declared.argument("thread_name"))
        sizes.append(declared.argument("num_threads"))
    known = [name.value for name in names if isinstance(name, Const) and isinstance(name.value, str)]
    if len(known) != len(names) or len(names) != len(sizes):
        return None
    return dict(zip(known, map(integer, sizes), strict=True))


def _declaration(launch: Launch) -> Launch | CallResult | None:
    """The call that names the axes: the launch itself, or its `plgpu.Mesh(...)`."""
    mesh = launch.argument("mesh")
    if mesh in (None, NONE):
        return launch if launch.api == _GPU_KERNEL else None
    return mesh if isinstance(mesh, CallResult) and mesh.function == _GPU_MESH else None


def gpu_axes_in(trace: KernelTrace) -> dict[str, int]:
    """The axes along which all of a Mosaic GPU kernel runs; none where a size is not known.

    Without that of the warpgroups where a pipeline gives them different code.
    """
    specialised = any(held.pipeline is not None and held.pipeline.api == SPECIALISED for held in trace.allocations)
    axes = gpu_axes(trace.launch, warpgroups=not specialised) or {}
    sizes = {axis: size for axis, size in axes.items() if size is not None}
    return sizes if len(sizes) == len(axes) else {}


def _items(value: Value | None) -> list[Value | None]:
    """The items of a tuple, one unknown for what is not one."""
    if value in (None, NONE):
        return []
    return list(value.items) if isinstance(value, Seq) and not value.open else [None]


def indices_in(value: Value) -> Iterator[Array]:
    """The results of `axis_index` that go into a scalar or a slice."""
    stack: list[Value] = [value]
    for current in iter_unique(stack):
        if isinstance(current, Slice):
            stack += [part for part in (current.start, current.size) if part is not None]
        elif isinstance(current, Array) and current.origin is not None:
            if current.origin.name == AXIS_INDEX:
                yield current
            else:
                stack += current.origin.args


def axis_points(values: list[Value], launch: Launch, axes: dict[str, int]) -> list[DevicePoint]:
    """Every place on the axes, at every step of the loops on which these scalars depend.

    Empty where the loops are not known, and where there are too many.
    """
    loops: dict[Op, range] = {}
    for value in values:
        for op in loops_in(value):
            first, end = (integer(bound) for bound in op.args[:2])
            if first is None or end is None:
                return []
            loops[op] = range(first, end)
    if math.prod([*axes.values(), *map(len, loops.values())]) > _MAX_POINTS:
        return []
    return [
        DevicePoint((), (), {}, launch, dict(zip(loops, steps, strict=True)), dict(zip(axes, place, strict=True)), axes)
        for place in itertools.product(*map(range, axes.values()))
        for steps in itertools.product(*loops.values())
    ]
