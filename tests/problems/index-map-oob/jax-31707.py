# jax issue 31707: the block after the last one
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL307
# static: partly
# call: difference(f32(32, 128))
# fails: interpret

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS, BLOCK = 32, 8


def difference_kernel(x_ref, next_ref, o_ref):
    o_ref[...] = next_ref[...] - x_ref[...]


def difference(x):
    x = x.reshape(ROWS, 128)
    return pl.pallas_call(
        difference_kernel,
        grid=(ROWS // BLOCK,),
        in_specs=[
            pl.BlockSpec((BLOCK, 128), lambda i: (i, 0)),
            pl.BlockSpec((BLOCK, 128), lambda i: (i + 1, 0)),  #!
        ],
        out_specs=pl.BlockSpec((BLOCK, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((ROWS, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x, x)
