# jax issue 37370: a trailing dimension added to a comparison
# jax: 0.9.2
# target: tpu:v5e
# expect: PAL205
# static: yes
# call: keep_valid(f32(32, 128))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

VALID = 20


def keep_valid_kernel(x_ref, o_ref):
    x = x_ref[...]
    is_valid = jnp.arange(x.shape[0]) < VALID
    o_ref[...] = jnp.where(is_valid[:, None], x, 0.0)  #!


def keep_valid(x):
    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    call = pl.pallas_call(
        keep_valid_kernel,
        in_specs=[vmem],
        out_specs=vmem,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )
    return call(x)
