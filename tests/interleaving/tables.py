"""A kernel with a table of integers, which a fault depends on or not."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def rows_kernel(table_ref, x_ref, o_ref, buffer, arrived, *, defect):
    copy = pltpu.make_async_copy(x_ref, buffer, arrived)
    copy.start()
    if defect == "read too early":
        o_ref[...] = buffer[...]
    if defect == "read too early for some values":

        @pl.when(table_ref[0] > 2)
        def _():
            o_ref[...] = buffer[...]

    copy.wait()
    o_ref[...] = buffer[...] + table_ref[1].astype(jnp.float32)
    if defect == "not awaited":
        copy.start()


def rows(table, x, defect=""):
    call = pl.pallas_call(
        functools.partial(rows_kernel, defect=defect),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.DMA],
    )
    return call(table, x)
