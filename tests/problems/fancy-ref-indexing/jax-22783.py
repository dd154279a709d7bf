# jax issue 22783: a strided slice and an array of columns in one index
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL209
# static: yes
# call: pick(f32(32, 128), i32(1, 8))
# fails: lowering

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def pick_kernel(x_ref, cols_ref, o_ref):
    wanted = cols_ref[0]
    o_ref[...] = x_ref[::4, wanted]  #!


def pick(x, cols):
    return pl.pallas_call(
        pick_kernel,
        out_shape=jax.ShapeDtypeStruct((8, 8), x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x, cols)
