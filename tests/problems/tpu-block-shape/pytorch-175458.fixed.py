import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

N, BLOCK = 5000, 1024


def total_kernel(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[0, 0] = 0.0

    at = pl.program_id(0) * BLOCK + jax.lax.iota(jnp.int32, BLOCK)
    o_ref[0, 0] += jnp.sum(jnp.where(at < N, x_ref[...], 0.0))


def total(x):
    return pl.pallas_call(
        total_kernel,
        grid=((N + BLOCK - 1) // BLOCK,),
        in_specs=[pl.BlockSpec((BLOCK,), lambda i: (i,))],
        out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
        out_shape=jax.ShapeDtypeStruct((1, 1), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)


def main():
    return total(jnp.ones((N,), jnp.float32))
