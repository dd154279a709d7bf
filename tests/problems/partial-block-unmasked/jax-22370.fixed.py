import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

COLS, BLOCK = 300, 128


def row_sums_kernel(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros(o_ref.shape, o_ref.dtype)

    col = pl.program_id(0) * BLOCK + jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
    o_ref[...] += jnp.sum(jnp.where(col < COLS, x_ref[...], 0.0), axis=1, keepdims=True)


def row_sums(x):
    x = x.reshape(16, COLS)
    return pl.pallas_call(
        row_sums_kernel,
        grid=(pl.cdiv(COLS, BLOCK),),
        in_specs=[pl.BlockSpec((16, BLOCK), lambda j: (0, j))],
        out_specs=pl.BlockSpec((16, 1), lambda j: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 1), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(x)
