# jax issue 24464: a mask that starts as a vector of True
# jax: 0.4.35
# target: tpu:v5e
# expect: PAL205
# static: yes
# call: mask_rows(f32(8, 128))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def mask_kernel(x_ref, o_ref):
    keep = jnp.full((8,), True)
    keep = keep & (x_ref[:, 0] > 0)
    o_ref[...] = jnp.where(keep[:, None], x_ref[...], 0.0)  #!


def mask_rows(x):
    return pl.pallas_call(
        mask_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
