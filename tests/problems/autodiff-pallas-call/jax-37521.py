# jax issue 37521: a gradient through a kernel that reads its program
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL505
# static: partly
# call: train_step(f32(16, 128))
# fails: trace

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def decay_kernel(x_ref, o_ref):
    i = pl.program_id(0)
    o_ref[...] = x_ref[...] * jnp.exp(-i.astype(jnp.float32))


def decay(x):
    return pl.pallas_call(
        decay_kernel,
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)


def loss(x):
    return jnp.sum(decay(x) ** 2)


def train_step(x):
    return x - 0.1 * jax.grad(loss)(x)  #!
