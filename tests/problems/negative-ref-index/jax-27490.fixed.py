import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def last_row_kernel(x_ref, o_ref):
    o_ref[0, :] = x_ref[x_ref.shape[0] - 1, :]


def last_row(x):
    return pl.pallas_call(
        last_row_kernel,
        out_shape=jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
