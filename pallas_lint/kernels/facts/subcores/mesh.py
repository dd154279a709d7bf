"""Meshes of SparseCore subcores: the axes of a launch, and what scalars are on one subcore."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from pallas_lint.compat.chips import sparse_cores
from pallas_lint.identity import iter_unique
from pallas_lint.kernels.facts.devices import DevicePoint
from pallas_lint.kernels.grid.grid_points import loops_in
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import Array, CallResult, Const, Slice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Op
    from pallas_lint.kernels.model.values import Value

AXIS_INDEX = "jax.lax.axis_index"
_MAX_POINTS = 4096  # subcores times steps of loops
_AXES = {
    "VectorSubcoreMesh": (("core_axis_name", "num_cores"), ("subcore_axis_name", "num_subcores")),
    "ScalarSubcoreMesh": (("axis_name", "num_cores"),),
}


def axes_of_subcores(launch: Launch, device: str | None) -> dict[str, int] | None:
    """The axes of the launch's mesh with their sizes, cores first; None where it is no mesh of subcores that is known.

    Where the mesh leaves a size to the chip, it is that of the device, or the least of all chips.
    """
    mesh = launch.argument("mesh")
    if not isinstance(mesh, CallResult) or mesh.open or last_part(mesh.function) not in _AXES:
        return None
    chips = sparse_cores(device)
    found: dict[str, int] = {}
    for name, count in _AXES[last_part(mesh.function)]:
        axis, given = mesh.argument(name), mesh.argument(count)
        least = min((chip.cores if count == "num_cores" else chip.subcores for chip in chips), default=0)
        size = least if given is None else integer(given)
        if not isinstance(axis, Const) or not isinstance(axis.value, str) or not size:
            return None
        found[axis.value] = size
    return found


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


def subcore_points(values: list[Value], launch: Launch, axes: dict[str, int]) -> list[DevicePoint]:
    """Every subcore, at every step of the loops that these scalars depend on; empty where these are not known."""
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
