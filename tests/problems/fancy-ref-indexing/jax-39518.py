# jax issue 39518: rows and offsets as vectors, into VMEM
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL209
# static: yes
# call: look_up(i32(8, 128), f32(64, 128))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def look_up_kernel(ids_vmem, blocks_vmem, out_vmem):
    rows = ids_vmem[...] // 128
    offs = ids_vmem[...] - 128 * rows
    out_vmem[...] = blocks_vmem[rows, offs]  #!


def look_up(ids, blocks):
    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    return pl.pallas_call(
        look_up_kernel,
        in_specs=[vmem, vmem],
        out_specs=vmem,
        out_shape=jax.ShapeDtypeStruct(ids.shape, jnp.float32),
    )(ids, blocks)
