"""Meshes of SparseCore subcores: the axes of a launch with their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.chips import sparse_cores
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import CallResult, Const

if TYPE_CHECKING:
    from pallas_lint.kernels.model.launch import Launch

_AXES = {
    "VectorSubcoreMesh": (("core_axis_name", "num_cores"), ("subcore_axis_name", "num_subcores")),
    "ScalarSubcoreMesh": (("axis_name", "num_cores"),),
}


def axes_of_subcores(launch: Launch, device: str | None, *, exact: bool = False) -> dict[str, int] | None:
    """The axes of the launch's mesh with their sizes, cores first; None where it is no mesh of subcores that is known.

    Where the mesh leaves a size to the chip, it is that of the device, or the least of all chips. `exact`: None where
    chips differ.
    """
    mesh = launch.argument("mesh")
    if not isinstance(mesh, CallResult) or mesh.open or last_part(mesh.function) not in _AXES:
        return None
    chips = sparse_cores(device)
    found: dict[str, int] = {}
    for name, count in _AXES[last_part(mesh.function)]:
        axis, given = mesh.argument(name), mesh.argument(count)
        sizes = {chip.cores if count == "num_cores" else chip.subcores for chip in chips}
        if exact and given is None and len(sizes) > 1:
            return None
        size = min(sizes, default=0) if given is None else integer(given)
        if not isinstance(axis, Const) or not isinstance(axis.value, str) or not size:
            return None
        found[axis.value] = size
    return found
