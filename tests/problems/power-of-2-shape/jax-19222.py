# jax issue 19222: five by five on Triton
# jax: 0.8.3
# target: triton
# expect: PAL107
# static: partly
# call: row_weights(f32(5, 5))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def weights_kernel(x_ref, o_ref, *, n):
    w = jnp.arange(n).astype(x_ref.dtype)  #!
    o_ref[...] = x_ref[...] * w[:, None]  #!


def row_weights(x):
    n = x.shape[0]
    return pl.pallas_call(
        lambda x_ref, o_ref: weights_kernel(x_ref, o_ref, n=5),
        out_shape=jax.ShapeDtypeStruct((5, 5), x.dtype),
        name=f"weights_{n}",
        compiler_params=plgpu.CompilerParams(num_warps=1),
    )(x)
