# jax issue 24582: a bitcast between widths
# jax: 0.8.3
# target: triton
# expect: PAL101
# static: partly
# call: halves(f32(64))
# fails: lowering

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def halves_kernel(x_ref, o_ref):
    bits = lax.bitcast_convert_type(x_ref[...], jnp.uint16)  #!
    o_ref[...] = bits.astype(jnp.int32)


def halves(x):
    return pl.pallas_call(
        halves_kernel,
        out_shape=jax.ShapeDtypeStruct((*x.shape, 2), jnp.int32),
        compiler_params=plgpu.CompilerParams(num_warps=1),
    )(x)
