"""Shards of arrays: what each device of a mesh gets under `jax.shard_map`, and what becomes of its results."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pallas_lint.kernels.library.host.trees import as_arrays, map_leaves
from pallas_lint.kernels.library.operands import tree_leaves
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    Dim,
    Seq,
    Value,
    from_dim,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    _Size = Callable[[Dim, int], Dim]  # another size of a dimension that is split over so many devices

_SPECS = ("P", "PartitionSpec")


def local_arguments(shard_map: CallResult, mesh: Value, arguments: Arguments) -> Arguments:
    """The arguments of the function on one device of the mesh; none where the shapes of some are not known.

    A dimension that is split over an axis of unknown size has no known size.
    """
    specs = _each(shard_map.argument("in_specs", 2), len(arguments.positional))
    if specs is None or arguments.open or arguments.keywords:
        return Arguments(open=True)
    given = list(map(as_arrays, arguments.positional))
    leaves = [leaf for value in given for leaf in tree_leaves(value) if leaf != NONE]
    if not all(isinstance(leaf, Array) and leaf.shape is not None for leaf in leaves):
        return Arguments(open=True)
    sizes = _axis_sizes(mesh)
    return Arguments([_sharded(value, spec, sizes, _part) for value, spec in zip(given, specs, strict=True)])


def global_result(shard_map: CallResult, mesh: Value, result: Value) -> Value:
    """What the call of a `shard_map` returns, given what its function returns on one device."""
    specs = shard_map.argument("out_specs", 3)
    return UNKNOWN if specs is None else _sharded(result, specs, _axis_sizes(mesh), _whole)


def _each(specs: Value | None, count: int) -> list[Value] | None:
    """The specs of so many operands: one for each, or one for all."""
    if isinstance(specs, Seq):
        return list(specs.items) if len(specs.items) == count and not specs.open else None
    return None if specs is None else [specs] * count


def _sharded(value: Value, spec: Value, sizes: dict[str, int], size: _Size) -> Value:
    """A tree of arrays with other sizes; specs are a prefix of its structure."""
    if isinstance(value, Seq) and isinstance(spec, Seq):
        if len(value.items) != len(spec.items) or value.open or spec.open:
            return UNKNOWN
        items = (_sharded(item, each, sizes, size) for item, each in zip(value.items, spec.items, strict=True))
        return Seq(tuple(items), value.kind)
    return map_leaves(lambda leaf: _leaf(leaf, spec, sizes, size), value)


def _leaf(leaf: Value, spec: Value, sizes: dict[str, int], size: _Size) -> Value:
    if not isinstance(leaf, Array) or leaf.shape is None:
        return UNKNOWN
    if not isinstance(spec, CallResult) or spec.short not in _SPECS or spec.open or len(spec.args) > len(leaf.shape):
        return Array(None, leaf.element, leaf.weak)
    splits = (*map(_axes, spec.args), *[()] * (len(leaf.shape) - len(spec.args)))
    shape = tuple(
        each if axes == () else None if axes is None or any(axis not in sizes for axis in axes)
        else size(each, prod(sizes[axis] for axis in axes))
        for each, axes in zip(leaf.shape, splits, strict=True)
    )  # fmt: skip
    return Array(shape, leaf.element, leaf.weak)


def _part(size: Dim, devices: int) -> Dim:
    return size if devices == 1 else size // devices if isinstance(size, int) and size % devices == 0 else None


def _whole(size: Dim, devices: int) -> Dim:
    return size if devices == 1 else size * devices if isinstance(size, int) else None


def _axes(split: Value) -> tuple[str, ...] | None:
    """The axes that one dimension is split over; None where they are not known."""
    items = (() if split == NONE else (split,)) if not isinstance(split, Seq) else None if split.open else split.items
    if items is None or not all(isinstance(item, Const) and isinstance(item.value, str) for item in items):
        return None
    return tuple(str(item.value) for item in items if isinstance(item, Const))


def mesh_axes(mesh: Value | None) -> dict[str, int | None] | None:
    """The axes of a mesh by name, with their sizes, None for those not known; None where the axes are not known."""
    if not isinstance(mesh, CallResult) or mesh.open:
        return None
    names = mesh.argument("axis_names", 1)
    axes = _axes(names) if names is not None else None
    if axes is None:
        return None
    sizes = _sizes(mesh)
    if len(axes) != len(sizes):
        return dict.fromkeys(axes)
    return {axis: integer(size) for axis, size in zip(axes, sizes, strict=True)}


def _sizes(mesh: CallResult) -> tuple[Value, ...]:
    """The sizes of the axes of a mesh as they are given; none where that is not seen."""
    given, devices = None, mesh.argument("devices", 0) if mesh.short == "Mesh" else None
    if mesh.short in ("make_mesh", "AbstractMesh"):
        given = mesh.argument("axis_shapes", 0) or mesh.argument("axis_sizes", 0)
    elif isinstance(devices, CallResult) and devices.short == "create_device_mesh":
        given = devices.argument("mesh_shape", 0)
    elif isinstance(devices, Seq):
        return () if devices.open else (Const(len(devices.items)),)
    elif isinstance(devices, Array):
        return tuple(map(from_dim, devices.shape or ()))
    return given.items if isinstance(given, Seq) and not given.open else ()


def mesh_attribute(mesh: CallResult, name: str) -> Value | None:
    """`mesh.shape`, `mesh.axis_names`, `mesh.size`; None for other attributes, and where the axes are not known."""
    axes = mesh_axes(mesh) if name in ("shape", "axis_names", "size") else None
    if axes is None:
        return None
    if name == "axis_names":
        return Seq(tuple(map(Const, axes)))
    sizes = _sizes(mesh)
    if len(sizes) != len(axes):
        sizes = (UNKNOWN,) * len(axes)
    if name == "shape":
        return Dictionary(tuple(zip(map(Const, axes), sizes, strict=True)))
    total: Value = Const(1)
    for size in sizes:
        total = arithmetic("*", total, size)
    return total


def _axis_sizes(mesh: Value) -> dict[str, int]:
    """The known sizes of a mesh's axes by name."""
    return {axis: size for axis, size in (mesh_axes(mesh) or {}).items() if size is not None}
