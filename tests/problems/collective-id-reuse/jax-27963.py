# jax issue 27963: two kernels that meet at the same barrier
# jax: 0.12.0.1
# target: tpu
# expect: PAL312
# static: yes
# fails: device

import functools

import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

NUM_DEVICES = 4


def _neighbour_barrier(axis):
    me = lax.axis_index(axis)
    sem = pltpu.get_barrier_semaphore()
    for step in (1, NUM_DEVICES - 1):
        pl.semaphore_signal(sem, 1, device_id=(lax.rem(me + step, NUM_DEVICES),))
    pl.semaphore_wait(sem, 2)
    return lax.rem(me + 1, NUM_DEVICES)


def shift_kernel(x_ref, o_ref, send_sem, recv_sem, *, axis):
    right = _neighbour_barrier(axis)
    copy = pltpu.make_async_remote_copy(x_ref, o_ref, send_sem, recv_sem, device_id=(right,))
    copy.start()
    copy.wait()


def shift_twice(x):
    def once(value):
        return pl.pallas_call(
            functools.partial(shift_kernel, axis="x"),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            out_shape=jax.ShapeDtypeStruct(value.shape, value.dtype),
            scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
            compiler_params=pltpu.CompilerParams(collective_id=0),
        )(value)

    def again(value):
        return pl.pallas_call(
            functools.partial(shift_kernel, axis="x"),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            out_shape=jax.ShapeDtypeStruct(value.shape, value.dtype),
            scratch_shapes=[pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA],
            compiler_params=pltpu.CompilerParams(collective_id=0),  #!
        )(value)

    return again(once(x))
