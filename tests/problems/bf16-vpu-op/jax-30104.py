# jax issue 30104: bfloat16 is compared and rounded on a v5e
# jax: 0.8.3
# target: tpu:v5e
# expect: PAL102
# static: partly
# call: quantise(f32(16, 128))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def safe_scale(scale):
    return jnp.where(scale == 0, jnp.ones_like(scale), scale)  #!


def quantise_kernel(x_ref, o_ref):
    x = x_ref[...].astype(jnp.bfloat16)
    o_ref[...] = safe_scale(x).astype(jnp.float32)


def quantise(x):
    return pl.pallas_call(
        quantise_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
    )(x)
