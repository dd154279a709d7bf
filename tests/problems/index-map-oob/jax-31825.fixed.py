import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def spread_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def block_of(i, j):
    return i, j


def spread(x):
    grid = (4, 2)
    return pl.pallas_call(
        spread_kernel,
        grid=grid,
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), block_of),
        out_shape=jax.ShapeDtypeStruct((32, 256), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "arbitrary")),
    )(x)
