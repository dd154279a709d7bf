# jax issue 24415: four rows repeated where the hardware has eight
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL701
# static: partly
# call: widen(f32(4, 128))
# fails: trace

import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def widen_kernel(x_ref, o_ref, *, times):
    o_ref[...] = pltpu.repeat(x_ref[...], times, axis=1)  #!


def widen(x, times=2):
    return pl.pallas_call(
        functools.partial(widen_kernel, times=times),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], times * x.shape[1]), x.dtype),
    )(x)
