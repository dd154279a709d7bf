# helion issue 2069: eight numbers at once from SMEM
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL211
# static: yes
# call: shift(i32(8), i32(8, 128))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def shift_kernel(amounts_smem, x_ref, o_ref):
    amounts = amounts_smem[pl.ds(0, 8)]  #!
    o_ref[...] = x_ref[...] + amounts[:, None]


def shift(amounts, x):
    return pl.pallas_call(
        shift_kernel,
        in_specs=[
            pl.BlockSpec(memory_space=pltpu.SMEM),
            pl.BlockSpec(memory_space=pltpu.VMEM),
        ],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32),
    )(amounts, x)
