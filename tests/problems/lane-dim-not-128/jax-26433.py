# jax issue 26433: a head of 192 cut out of an array of heads
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL201
# static: partly
# call: scale_heads(f32(256, 768))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

SEQ, HEADS, HEAD_DIM = 256, 4, 192


def head_kernel(q_ref, o_ref):
    o_ref[...] = q_ref[...] * HEAD_DIM**-0.5


def scale_heads(q):
    block = pl.BlockSpec((128, HEAD_DIM), lambda h, i: (i, h))  #!
    return pl.pallas_call(
        head_kernel,
        grid=(HEADS, SEQ // 128),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((SEQ, HEADS * HEAD_DIM), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
    )(q)
