import functools

import jax
import jax.numpy as jnp
from jax import random
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def dropout_kernel(bits_ref, x_ref, o_ref, *, rate):
    keep = bits_ref[...] >= rate
    o_ref[...] = jnp.where(keep, x_ref[...] / (1 - rate), 0.0)


def dropout(seed, x, rate=0.1):
    uniform = random.uniform(random.wrap_key_data(seed), x.shape)
    return pl.pallas_call(
        functools.partial(dropout_kernel, rate=rate),
        grid=(x.shape[0] // 8,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(),
    )(uniform, x)
