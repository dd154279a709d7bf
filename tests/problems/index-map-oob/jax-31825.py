# jax issue 31825: the output has fewer blocks than the grid has steps
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL307
# static: partly
# call: spread(f32(32, 256))
# fails: interpret

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def spread_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def every_other(i, j):
    return 2 * i, j  #!


def spread(x):
    grid = (4, 2)
    return pl.pallas_call(
        spread_kernel,
        grid=grid,
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), every_other),
        out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "arbitrary")),
    )(x)
