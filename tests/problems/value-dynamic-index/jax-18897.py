# jax issue 18897: the whole ref is loaded, then the value is indexed with the loop counter
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL208
# static: yes
# call: decay_sum(f32(64, 128), f32(64, 128))
# fails: lowering

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def wkv_kernel(k_ref, w_ref, o_ref, *, steps: int):
    k = k_ref[...]
    w = w_ref[...]

    def step(t, carry):
        return carry * w[t] + k[t]  #!

    o_ref[...] = lax.fori_loop(0, steps, step, jnp.zeros((128,), jnp.float32))[None, :]


def decay_sum(k, w):
    steps = k.shape[0]

    def kernel(*refs):
        wkv_kernel(*refs, steps=steps)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(k, w)
