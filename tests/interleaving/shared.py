"""Kernels whose parallel axis two cores may share: each core has its own scratch, and its part of the steps."""

from __future__ import annotations

import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def kernel(x_ref, o_ref, block, arrived, *, defect):
    step = pl.program_id(0)
    there = 0 if defect == "one place" else step
    load = pltpu.make_async_copy(x_ref.at[step], block, arrived)
    store = pltpu.make_async_copy(block, o_ref.at[there], arrived)
    if defect == "begun once":
        pl.when(step == 0)(pltpu.make_async_copy(x_ref.at[0], block, arrived).start)
        pl.when(step == 3)(pltpu.make_async_copy(x_ref.at[0], block, arrived).wait)
        return
    load.start()
    load.wait()
    store.start()
    store.wait()


def copied(x, semantics="parallel", defect=""):
    return pl.pallas_call(
        functools.partial(kernel, defect=defect),
        out_shape=jax.ShapeDtypeStruct((4, 8, 128), x.dtype),
        grid=(4,),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[pltpu.VMEM((8, 128), x.dtype), pltpu.SemaphoreType.DMA],
        compiler_params=pltpu.CompilerParams(dimension_semantics=(semantics,)),
    )(x)
