# jax issue 30391: an RMS norm in bfloat16
# jax: 0.8.3
# target: tpu:v5e
# expect: PAL102
# static: partly
# call: rms_norm(f32(4, 8, 256))
# fails: compile

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def rms_norm_kernel(x_ref, o_ref, *, eps):
    x = x_ref[...].astype(jnp.bfloat16)
    mean_square = jnp.mean(jnp.square(x), axis=2, keepdims=True)
    o_ref[...] = (x * jax.lax.rsqrt(mean_square + eps)).astype(o_ref.dtype)  #!


def rms_norm(x, eps=1e-6):
    b, s, d = x.shape
    return pl.pallas_call(
        functools.partial(rms_norm_kernel, eps=eps),
        grid=(b,),
        in_specs=[pl.BlockSpec((1, s, d), lambda i: (i, 0, 0))],
        out_specs=pl.BlockSpec((1, s, d), lambda i: (i, 0, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)
