# jax issue 23179: a float64 product on Triton
# jax: 0.8.3
# target: triton
# expect: PAL105
# static: partly
# call: matmul64(f32(64, 64), f32(64, 64))
# fails: device

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

jax.config.update("jax_enable_x64", True)


def mm64_kernel(x_ref, y_ref, o_ref):
    x = x_ref[...].astype(jnp.float64)  #!
    y = y_ref[...].astype(jnp.float64)  #!
    o_ref[...] = jnp.dot(x, y).astype(o_ref.dtype)


def matmul64(x, y):
    return pl.pallas_call(
        mm64_kernel,
        out_shape=jax.ShapeDtypeStruct((64, 64), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x, y)
