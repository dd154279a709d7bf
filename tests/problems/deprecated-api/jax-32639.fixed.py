import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def sc_copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def copy(x):
    return pl.pallas_call(
        sc_copy,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
