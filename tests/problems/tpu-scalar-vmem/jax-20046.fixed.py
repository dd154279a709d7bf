import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def exp_kernel(x_ref, o_ref):
    o_ref[...] = jnp.exp(x_ref[...])


def exp_one(x):
    tile = jnp.broadcast_to(x, (8, 128))
    block = pl.BlockSpec((8, 128), lambda i: (0, 0))
    return pl.pallas_call(
        exp_kernel,
        grid=(1,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(tile)[0, :1]
