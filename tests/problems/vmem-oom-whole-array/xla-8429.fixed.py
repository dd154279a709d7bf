import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def add(x, y):
    return pl.pallas_call(
        add_kernel,
        grid=(x.shape[0] // 256, x.shape[1] // 1024),
        in_specs=[pl.BlockSpec((256, 1024), lambda i, j: (i, j))] * 2,
        out_specs=pl.BlockSpec((256, 1024), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x, y)


def main():
    x = jnp.ones((8192, 4096), jnp.float32)
    return add(x, x)
