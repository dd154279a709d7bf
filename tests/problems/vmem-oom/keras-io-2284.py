# keras-io issue 2284: the contracted dimension is not tiled
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL213
# static: partly
# call: matmul(f32(8192, 8192), f32(8192, 8192))
# fails: compile

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def mm_kernel(a_ref, b_ref, c_ref, *, activation):
    c_ref[...] = activation(jnp.matmul(a_ref[...], b_ref[...], preferred_element_type=jnp.float32))


def matmul(a, b, block=256, size=8192):
    return pl.pallas_call(  #!
        functools.partial(mm_kernel, activation=jax.nn.relu),
        grid=(size // block, size // block),
        in_specs=[
            pl.BlockSpec((block, size), lambda i, j: (i, 0)),
            pl.BlockSpec((size, block), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((size, size), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(a, b)


def main():
    key = jax.random.key(0)
    a = jax.random.normal(key, (8192, 8192), dtype=jnp.float32)
    return matmul(a, a)
