# nufftax issue 19: a GPU branch that still takes Triton
# jax: 0.11.2
# target: triton
# expect: PAL705
# static: yes
# call: spread(f32(256), f32(256))
# fails: warning

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas.triton import CompilerParams  #!

BLOCK = 128


def _spread(x_ref, c_ref, o_ref, *, beta):
    x = x_ref[...]
    o_ref[...] = c_ref[...] * jnp.exp(beta * (jnp.sqrt(1.0 - x * x) - 1.0))


def spread(x, c, beta=2.3):
    one = pl.BlockSpec((BLOCK,), lambda i: (i,))
    return pl.pallas_call(
        functools.partial(_spread, beta=beta),
        grid=pl.cdiv(x.shape[0], BLOCK),
        in_specs=[one, one],
        out_specs=one,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=CompilerParams(num_warps=4),
    )(x, c)
