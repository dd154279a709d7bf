# jax issue 38618: the largest of a block, over two axes at once
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL101
# static: yes
# call: best(f32(16, 128))
# fails: trace

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def best_kernel(x_ref, at_ref):
    at_ref[0] = jnp.argmax(x_ref[...], axis=(0, 1))  #!


def best(x):
    return pl.pallas_call(
        best_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
        out_shape=jax.ShapeDtypeStruct((1,), jnp.int32),
    )(x)
