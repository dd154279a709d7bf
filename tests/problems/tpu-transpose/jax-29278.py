# jax issue 29278: an int8 block turned over
# jax: 0.4.35
# target: tpu:v5e
# expect: PAL203
# static: partly
# call: turn(i8(128, 128))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def turn_kernel(w_ref, o_ref):
    w = w_ref[...].astype(jnp.int8)
    o_ref[...] = w.T  #!


def turn(w):
    return pl.pallas_call(
        turn_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct((w.shape[1], w.shape[0]), jnp.int8),
    )(w)
