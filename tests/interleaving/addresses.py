"""Kernels that name a device in each of the ways that there are, on a mesh of 2 x 3; a copy in two launches."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

MESH, LOGICAL = pl.DeviceIdType.MESH, pl.DeviceIdType.LOGICAL
# The device at (0, 1) names one: how, and the place of the device that is meant.
FORMS = {
    "logical": (LOGICAL, 3, (1, 0)),
    "tuple": (MESH, (1, 0), (1, 0)),
    "dict": (MESH, {"x": 0, "y": 1}, (1, 0)),
    "dict of one axis": (MESH, {"x": 2}, (0, 2)),
    "joint axes": (MESH, {("y", "x"): 3}, (1, 0)),
    "joint axes, turned": (MESH, {("x", "y"): 4}, (0, 2)),
    "logical, not there": (LOGICAL, 6, (1, 0)),
    "tuple, not there": (MESH, (1, 3), (1, 0)),
    "dict, not there": (MESH, {"y": 2}, (1, 0)),
    "another": (MESH, (0, 0), (1, 0)),
}


def kernel(x_ref, o_ref, ready, *, kind, name, meant):
    place = lax.axis_index("y"), lax.axis_index("x")

    @pl.when((place[0] == 0) & (place[1] == 1))
    def _():
        pl.semaphore_signal(ready, 1, device_id=jax.tree.map(jnp.int32, name), device_id_type=kind)

    @pl.when((place[0] == meant[0]) & (place[1] == meant[1]))
    def _():
        pl.semaphore_wait(ready, 1)

    o_ref[...] = x_ref[...]


def post(x, form):
    kind, name, meant = FORMS[form]
    call = pl.pallas_call(
        functools.partial(kernel, kind=kind, name=name, meant=meant),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.SemaphoreType.REGULAR],
    )
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:6]).reshape(2, 3), ("y", "x"))
    mapped = jax.shard_map(call, mesh=mesh, in_specs=P(("y", "x")), out_specs=P(("y", "x")), check_vma=False)
    return jax.jit(mapped)(x)


def along_one_axis(x, number):
    """The device's number is its place on a mesh of one axis."""

    def kernel(x_ref, o_ref, ready):
        me = lax.axis_index("x")
        pl.when(me == 1)(lambda: pl.semaphore_signal(ready, 1, device_id=jnp.int32(number), device_id_type=MESH))
        pl.when(me == 3)(lambda: pl.semaphore_wait(ready, 1))
        o_ref[...] = x_ref[...]

    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        scratch_shapes=[pltpu.SemaphoreType.REGULAR],
    )
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:6]), ("x",))
    return jax.jit(jax.shard_map(call, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))(x)


def begin(x_ref, same_ref, o_ref, arrived):
    pltpu.make_async_copy(x_ref, o_ref, arrived).start()


def end(x_ref, o_ref, arrived, same_ref):
    pltpu.make_async_copy(x_ref, o_ref, arrived).wait()


def split(x, awaited):
    """A copy that one launch starts and the next one waits for, if it does."""
    anywhere, semaphore = pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    x, copied, arrived = pl.pallas_call(
        begin,
        out_shape=(out, out, pltpu.SemaphoreType.DMA(())),
        in_specs=[anywhere],
        out_specs=(anywhere, anywhere, semaphore),
        input_output_aliases={0: 0},
    )(x)
    if not awaited:
        return copied
    return pl.pallas_call(
        end,
        out_shape=out,
        in_specs=[anywhere, anywhere, semaphore],
        out_specs=anywhere,
        input_output_aliases={1: 0},
    )(x, copied, arrived)
