# jax issue 32551: the guard against fully masked rows has no rule on Triton
# jax: 0.7.2
# target: triton
# expect: PAL103
# static: yes
# call: softmax(f32(64, 128))
# fails: lowering

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def row_max(scores):
    m = jnp.max(scores, axis=-1, keepdims=True)
    return jnp.where(jnp.isfinite(m), m, 0.0)  #!


def softmax_kernel(x_ref, o_ref, *, scale):
    scores = x_ref[...] * scale
    e = jnp.exp(scores - row_max(scores))
    o_ref[...] = e / jnp.sum(e, axis=-1, keepdims=True)


def softmax(x, scale=0.5, block_rows=16):
    rows, cols = x.shape
    spec = pl.BlockSpec((block_rows, cols), lambda i: (i, 0))
    return pl.pallas_call(
        functools.partial(softmax_kernel, scale=scale),
        grid=(rows // block_rows,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
