import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

_BLOCK_SIZE_0 = 8
_BLOCK_SIZE_1 = 64


def _launcher_square(x, out):
    out[...] = x[...] * x[...]


def square(x):
    return pl.pallas_call(
        _launcher_square,
        grid=(64 // _BLOCK_SIZE_0, 64 // _BLOCK_SIZE_1),
        in_specs=[pl.BlockSpec((_BLOCK_SIZE_0, _BLOCK_SIZE_1), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((_BLOCK_SIZE_0, _BLOCK_SIZE_1), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((64, 64), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)
