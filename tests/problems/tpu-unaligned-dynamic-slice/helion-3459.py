# helion issue 3459: a store that starts anywhere in the lanes
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL204
# static: partly
# call: place(i32(1), f32(8, 128))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def put(ref, at, value):
    width = value.shape[1]
    ref[:, pl.ds(at, width)] = value  #!


def place_kernel(offset_ref, x_ref, o_ref):
    o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)
    put(o_ref, offset_ref[0], x_ref[...])


def place(offset, x):
    return pl.pallas_call(
        place_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct((8, 512), jnp.float32),
    )(offset, x)
