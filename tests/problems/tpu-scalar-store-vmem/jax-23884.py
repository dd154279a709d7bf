# jax issue 23884: a constant into the first element
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL211
# static: yes
# call: flag(f32(8, 128))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def write_scalar(ref, value):
    ref[0, 0] = value  #!


def flag_kernel(x_ref, o_ref):
    total = jnp.sum(x_ref[...])
    write_scalar(o_ref, jnp.where(total > 0, jnp.int32(10), jnp.int32(0)))


def flag(x):
    return pl.pallas_call(
        flag_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.int32),
    )(x)
