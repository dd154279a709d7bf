# jax issue 29698: a batch of one product
# jax: 0.6.2
# target: tpu:v5e
# expect: PAL109
# static: partly
# call: batched(f32(1, 128, 128), f32(1, 128, 128))
# fails: lowering

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def batched_kernel(x_ref, y_ref, o_ref):
    x, y = x_ref[...], y_ref[...]
    dims = (((1,), (1,)), ((0,), (0,)))
    o_ref[...] = lax.dot_general(x, y, dims, preferred_element_type=jnp.float32)  #!


def batched(x, y):
    b, k, m = x.shape
    n = y.shape[-1]
    return pl.pallas_call(
        batched_kernel,
        grid=(b,),
        in_specs=[pl.BlockSpec((1, k, m), lambda i: (i, 0, 0)), pl.BlockSpec((1, k, n), lambda i: (i, 0, 0))],
        out_specs=pl.BlockSpec((1, m, n), lambda i: (i, 0, 0)),
        out_shape=jax.ShapeDtypeStruct((b, m, n), jnp.float32),
        compiler_params=pltpu.TPUCompilerParams(dimension_semantics=("parallel",)),
    )(x, y)
