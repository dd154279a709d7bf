# jax issue 21190: a scan over the rows of a loaded block
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL108
# static: yes
# call: smooth(f32(64, 128))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def smooth_kernel(alpha, x_ref, y_ref):
    def inner(carry, row):
        carry = alpha * carry + (1 - alpha) * row
        return carry, carry

    first = jnp.zeros((x_ref.shape[1],), x_ref.dtype)
    _, ys = jax.lax.scan(inner, first, x_ref[...])  #!
    y_ref[...] = ys


def smooth(x, alpha=0.9):
    return pl.pallas_call(
        lambda x_ref, y_ref: smooth_kernel(alpha, x_ref, y_ref),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
    )(x)
