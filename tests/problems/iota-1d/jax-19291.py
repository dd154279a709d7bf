# jax issue 19291: positions made with a one-dimensional iota
# jax: 0.4.35
# target: tpu:v4
# expect: PAL207
# static: yes
# call: add_positions(f32(8, 128))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _positions(n):
    return jnp.arange(n, dtype=jnp.int32)  #!


def position_kernel(x_ref, o_ref):
    pos = _positions(x_ref.shape[1])
    o_ref[...] = x_ref[...] + pos.astype(jnp.float32)[None, :]


def add_positions(x):
    return pl.pallas_call(
        position_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=dict(mosaic=dict(dimension_semantics=())),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
    )(x)
