import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def noisy_kernel(x_ref, o_ref):
    step = pl.program_id(0)
    pl.debug_print("at step {}", step)
    o_ref[...] = x_ref[...]


@functools.partial(jax.jit, compiler_options={"xla_tpu_enable_log_recorder": "true"})
def traced(x):
    return pl.pallas_call(
        noisy_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
