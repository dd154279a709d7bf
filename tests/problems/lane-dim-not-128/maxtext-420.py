# maxtext issue 420: eight numbers a head
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL201
# static: partly
# call: norms(f32(128, 64))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

head_dim = 8


def norm_kernel(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x / jnp.sqrt(jnp.sum(x * x, axis=1, keepdims=True))


def norms(x):
    per_head = pl.BlockSpec(index_map=lambda i, h: (i, h), block_shape=(64, head_dim))  #!
    call = pl.pallas_call(
        norm_kernel,
        grid=(2, 8),
        in_specs=[per_head],
        out_specs=per_head,
        out_shape=jax.ShapeDtypeStruct((128, 64), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )
    return call(x)
