# jax issue 39366: rows and columns of a loaded block by arrays of numbers
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL208
# static: yes
# call: dispatch(i32(8, 128), f32(64, 128))
# fails: lowering

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def dispatch_kernel(route_ref, payload_ref, out_ref):
    payload = payload_ref[...]
    rows = route_ref[...]
    cols = lax.broadcasted_iota(jnp.int32, rows.shape, 1)
    out_ref[...] = payload[rows, cols]  #!


def dispatch(route, payload):
    return pl.pallas_call(
        dispatch_kernel,
        out_shape=jax.ShapeDtypeStruct(route.shape, payload.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(route, payload)
