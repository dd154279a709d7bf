# jax issue 38990: packed int8 weights are shifted
# jax: 0.8.3
# target: tpu:v5e
# expect: PAL102
# static: yes
# call: unpack(i8(32, 128))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def unpack_int4(packed):
    high = packed >> 4  #!
    return high.astype(jnp.float32)


def unpack_kernel(w_ref, o_ref):
    w = w_ref[...].astype(jnp.int8)
    o_ref[...] = unpack_int4(w)


def unpack(w):
    return pl.pallas_call(
        unpack_kernel,
        grid=(w.shape[0] // 32,),
        in_specs=[pl.BlockSpec((32, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((32, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(w.shape, jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(w)
