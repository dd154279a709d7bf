# helion issue 2104: the last slice runs past the end
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL412
# static: partly
# call: chunked_sum(f32(1000, 128))
# fails: interpret

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = 1000
CHUNK = 128


def chunked_kernel(x_ref, o_ref):
    def body(i, acc):
        chunk = x_ref[pl.ds(i * CHUNK, CHUNK), :]  #!
        return acc + jnp.sum(chunk, axis=0, keepdims=True)

    o_ref[...] = lax.fori_loop(0, pl.cdiv(ROWS, CHUNK), body, jnp.zeros((1, 128), jnp.float32))


def chunked_sum(x):
    return pl.pallas_call(
        chunked_kernel,
        in_specs=[pl.BlockSpec((ROWS, 128), lambda: (0, 0))],
        out_specs=pl.BlockSpec((1, 128), lambda: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((1, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(x)
