# jax issue 25188: random numbers drawn inside a GPU kernel
# jax: 0.8.3
# target: triton
# expect: PAL101
# static: yes
# call: dropout(u32(2), f32(16, 128))
# fails: lowering

import functools

import jax
import jax.numpy as jnp
from jax import random
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def dropout_kernel(seed_ref, x_ref, o_ref, *, rate):
    key = random.PRNGKey(seed_ref[0] + pl.program_id(0))  #!
    keep = random.uniform(key, x_ref.shape) >= rate  #!
    o_ref[...] = jnp.where(keep, x_ref[...] / (1 - rate), 0.0)


def dropout(seed, x, rate=0.1):
    return pl.pallas_call(
        functools.partial(dropout_kernel, rate=rate),
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec((2,), lambda i: (0,)), pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(),
    )(seed, x)
