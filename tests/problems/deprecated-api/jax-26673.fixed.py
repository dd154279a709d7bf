import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def barrier_kernel(x_ref, o_ref, sem):
    pl.semaphore_signal(sem, inc=1)
    o_ref[...] = x_ref[...]
    pl.semaphore_wait(sem, 1)


def barrier(x):
    return pl.pallas_call(
        barrier_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.SemaphoreType.REGULAR],
        compiler_params=pltpu.CompilerParams(),
    )(x)
