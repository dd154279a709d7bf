# jax issue 26673: semaphores by their old TPU names
# jax: 0.10.2
# target: tpu:v5e
# expect: PAL702
# static: yes
# call: barrier(f32(8, 128))
# fails: warning

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def barrier_kernel(x_ref, o_ref, sem):
    pltpu.semaphore_signal(sem, inc=1)  #!
    o_ref[...] = x_ref[...]
    pltpu.semaphore_wait(sem, 1)  #!


def barrier(x):
    return pl.pallas_call(
        barrier_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.SemaphoreType.REGULAR],
        compiler_params=pltpu.CompilerParams(),
    )(x)
