import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def mm_kernel(a_ref, b_ref, c_ref, *, activation, steps):
    k = pl.program_id(2)

    @pl.when(k == 0)
    def _():
        c_ref[...] = jnp.zeros_like(c_ref)

    c_ref[...] += jnp.matmul(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)

    @pl.when(k == steps - 1)
    def _():
        c_ref[...] = activation(c_ref[...])


def matmul(a, b, block=256, tile_k=512, size=8192):
    steps = size // tile_k
    return pl.pallas_call(
        functools.partial(mm_kernel, activation=jax.nn.relu, steps=steps),
        grid=(size // block, size // block, steps),
        in_specs=[
            pl.BlockSpec((block, tile_k), lambda i, j, k: (i, k)),
            pl.BlockSpec((tile_k, block), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((size, size), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(a, b)


def main():
    key = jax.random.key(0)
    a = jax.random.normal(key, (8192, 8192), dtype=jnp.float32)
    return matmul(a, a)
