# jax issue 25192: nothing is printed without the log recorder
# jax: 0.6.2
# target: tpu:v5e
# expect: PAL605
# static: yes
# call: traced(f32(32, 128))
# fails: device

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def noisy_kernel(x_ref, o_ref):
    step = pl.program_id(0)
    pl.debug_print("at step {}", step)  #!
    o_ref[...] = x_ref[...]


@jax.jit
def traced(x):
    return pl.pallas_call(
        noisy_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0), memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
