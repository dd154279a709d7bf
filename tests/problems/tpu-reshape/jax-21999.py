# jax issue 21999: a window of 11 by 11 merged into one dimension
# jax: 0.4.35
# target: tpu:v5e
# expect: PAL202
# static: partly
# call: flatten_windows(f32(4, 11, 11, 128))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

WIN = 11


def window_kernel(x_ref, w_ref, o_ref):
    patch = x_ref[0]
    merged = patch.reshape(WIN * WIN, 128)  #!
    o_ref[0] = jnp.dot(merged, w_ref[...], preferred_element_type=jnp.float32)


def flatten_windows(x):
    n = x.shape[0]
    w = jnp.ones((128, 128), jnp.float32)
    return pl.pallas_call(
        window_kernel,
        grid=(n,),
        in_specs=[
            pl.BlockSpec((1, WIN, WIN, 128), lambda i: (i, 0, 0, 0)),
            pl.BlockSpec((128, 128), lambda i: (0, 0)),
        ],
        out_specs=pl.BlockSpec((1, WIN * WIN, 128), lambda i: (i, 0, 0)),
        out_shape=jax.ShapeDtypeStruct((n, WIN * WIN, 128), jnp.float32),
        compiler_params=pltpu.TPUCompilerParams(dimension_semantics=("parallel",)),
    )(x, w)
