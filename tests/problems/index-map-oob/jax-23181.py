# jax issue 23181: block 1 of a dimension that has only block 0
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL307
# static: partly
# call: copy(f32(1, 256, 1, 256))
# fails: interpret

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def copy_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def copy(x):
    bl = bn = 128
    return pl.pallas_call(
        copy_kernel,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((1, bl, 1, bn), lambda l, j: (1, l, 1, j))],  #!
        out_specs=pl.BlockSpec((1, bl, 1, bn), lambda l, j: (0, l, 0, j)),
        out_shape=jax.ShapeDtypeStruct((1, 256, 1, 256), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)


def main():
    return copy(jnp.ones((1, 256, 1, 256), jnp.float32))
