# jax issue 27490: the last row, counted from the end
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL210
# static: yes
# call: last_row(f32(32, 128))
# fails: device

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

LAST = -1


def last_row_kernel(x_ref, o_ref):
    o_ref[0, :] = x_ref[LAST, :]  #!


def last_row(x):
    return pl.pallas_call(
        last_row_kernel,
        out_shape=jax.ShapeDtypeStruct((1, x.shape[1]), x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
