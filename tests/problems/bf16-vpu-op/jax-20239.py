# jax issue 20239: a bfloat16 logarithm and quotient on Triton
# jax: 0.4.35
# target: triton
# expect: PAL102
# static: partly
# call: entropy(f32(256), f32(256))
# fails: device

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def entropy_kernel(p_ref, q_ref, o_ref):
    p = p_ref[...].astype(jnp.bfloat16)
    q = q_ref[...].astype(jnp.bfloat16)
    o_ref[...] = jnp.log(p / q).astype(jnp.float32)  #!


def entropy(p, q):
    return pl.pallas_call(
        entropy_kernel,
        out_shape=jax.ShapeDtypeStruct(p.shape, jnp.float32),
        compiler_params=plgpu.TritonCompilerParams(num_warps=4),
    )(p, q)
