"""Launches that stand in a `shard_map`: a mesh like theirs, of other devices."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from .. import environment
from ..device_targets import Missing


def mesh_of(axes: dict[str, int], devices: Sequence[Any] | None) -> Any:
    """A mesh with these axes, of these devices; None: of those of this process. Raises Missing."""
    import jax
    import numpy as np

    count = math.prod(axes.values())
    found = jax.devices() if devices is None else devices
    if len(found) < count:
        raise Missing(f"its mesh has {count} devices, and the function sees {len(found)}: give --devices {count}")
    return jax.sharding.Mesh(np.array(list(found)[:count]).reshape(tuple(axes.values())), tuple(axes))


def none_around() -> contextlib.AbstractContextManager[Any]:
    """Context without the mesh that a program may have left set: a launch is put into its own."""
    import jax

    change = getattr(jax, "set_mesh", None)
    try:
        return contextlib.nullcontext() if change is None else change(None)
    except (AttributeError, TypeError, ValueError):  # which takes meshes only
        return contextlib.nullcontext()


def mapped(function: Callable[..., Any], mesh: Any) -> Callable[..., Any]:
    """The function on each device of the mesh, all with the same operands."""
    import jax

    spread = getattr(jax, "shard_map", None)
    if spread is None:
        spread = environment.found(environment.optional("jax.experimental.shard_map"), "shard_map")
    nowhere = jax.sharding.PartitionSpec()
    for unchecked in ({"check_vma": False}, {"check_rep": False}):
        try:
            mapped: Callable[..., Any] = spread(function, mesh=mesh, in_specs=nowhere, out_specs=nowhere, **unchecked)
        except TypeError:  # the other release's word
            continue
        return mapped
    raise Missing("this jax has no `shard_map` that is understood")


def everywhere(mesh: Any, memory: str | None = None) -> Any:
    """The sharding of an operand that every device of a mesh has, in one of its memories."""
    import jax

    memories = {} if memory is None else {"memory_kind": memory}
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(), **memories)
