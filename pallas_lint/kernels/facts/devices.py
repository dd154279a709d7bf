"""Devices of the mesh around a launch, and what scalars are on one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.grid.grid_points import LoopPoint
from pallas_lint.kernels.library.host.shards import mesh_axes
from pallas_lint.kernels.library.operands import leaves
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, Const
from pallas_lint.records import field, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.kernels.grid.grid_points import Known, Scalar
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Op
    from pallas_lint.kernels.model.values import Value


def axes_around(launch: Launch) -> dict[str, int | None] | None:
    """The axes of the mesh that every call of the launch has around it; None where that is not known."""
    contexts = launch.result_calls.sharding_contexts
    found = [
        mesh_axes(context.shard_map.argument("mesh", 1)) if context.shard_map is not None else None
        for context in contexts
        if not context.nested and not context.hidden
    ]
    same = found and len(found) == len(contexts) and all(axes == found[0] for axes in found)
    return found[0] if same else None


_MAX_FOLLOWED = 64  # operations


def axes_of(value: Value) -> list[str]:
    """The axes of a mesh along which a scalar is computed: by the index of the device there, or their size."""
    found: dict[str, None] = {}
    pending, seen = [value], 0
    while pending and seen < _MAX_FOLLOWED:
        made, seen = pending.pop(), seen + 1
        op = made.origin if isinstance(made, Array) else None
        if op is not None and op.name == "jax.lax.axis_index":
            names = leaves(op.argument("axis_name", 0) or UNKNOWN)
            found.update((str(name.value), None) for name in names if isinstance(name, Const))
        elif op is not None:
            pending += op.args
    return list(found)


@frozen
class DevicePoint(LoopPoint):
    """One device of a mesh: what `axis_index` and the size of an axis are there."""

    coordinates: Mapping[str, int] = field(factory=dict)
    axes: Mapping[str, int] = field(factory=dict)  # their sizes

    def _value(self, value: Value, depth: int, known: Known) -> Scalar | None:
        if isinstance(value, CallResult) and value.function == "jax.lax.axis_size":
            return self._along(value.argument("axis_name", 0), size=True)
        return super()._value(value, depth, known)

    def _operation(self, op: Op, depth: int, known: Known) -> Scalar | None:
        if op.name == "jax.lax.axis_index":
            return self._along(op.argument("axis_name", 0), size=False)
        if op.name == "jax.lax.psum":
            return self._along(op.argument("axis_name", 1), size=True) if op.argument("x", 0) == Const(1) else None
        return super()._operation(op, depth, known)

    def _along(self, names: Value | None, *, size: bool) -> int | None:
        """The index of the device along these axes, or how many devices there are."""
        along = [str(name.value) for name in leaves(names) if isinstance(name, Const)] if names is not None else []
        if not along or not all(axis in self.coordinates for axis in along):
            return None
        count, index = 1, 0
        for axis in along:
            count *= self.axes[axis]
            index = index * self.axes[axis] + self.coordinates[axis]
        return count if size else index
