# jax issue 19146: value and gradient of a loss with a kernel in it
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL505
# static: partly
# call: update(f32(128, 128), f32(128, 128))
# fails: trace

import functools

import jax
import jax.numpy as jnp
from jax import value_and_grad
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def mm_kernel(x_ref, w_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)


@functools.partial(jax.jit, static_argnames=("bm",))
def mm(x, w, bm=64):
    return pl.pallas_call(
        mm_kernel,
        grid=(x.shape[0] // bm,),
        in_specs=[pl.BlockSpec((bm, 128), lambda i: (i, 0)), pl.BlockSpec((128, 128), lambda i: (0, 0))],
        out_specs=pl.BlockSpec((bm, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x, w)


def objective(w, x):
    return jnp.mean(jnp.square(mm(x, w)))


def update(w, x):
    value, grads = value_and_grad(objective)(w, x)  #!
    return value, w - 1e-3 * grads
