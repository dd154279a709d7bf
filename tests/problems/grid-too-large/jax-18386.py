# jax issue 18386: more blocks along the second axis than CUDA takes
# jax: 0.8.3
# target: triton:cuda
# expect: PAL306
# static: partly
# call: scale(f32(4, 1120000))
# fails: device

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

HEADS, TOKENS, BLOCK = 4, 1_120_000, 16


def scale_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 0.5


def scale(x):
    spec = pl.BlockSpec((1, BLOCK), lambda h, t: (h, t))
    return pl.pallas_call(
        scale_kernel,
        grid=(HEADS, TOKENS // BLOCK),  #!
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((HEADS, TOKENS), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=1),
    )(x)
