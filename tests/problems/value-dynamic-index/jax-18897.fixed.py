import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def wkv_kernel(k_ref, w_ref, o_ref, *, steps: int):
    def step(t, carry):
        return carry * w_ref[t] + k_ref[t]

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
