# helion issue 2212: a Python loop as long as a number in memory says
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL502
# static: yes
# call: ragged_sum(i32(4), f32(4, 64, 128))
# fails: trace

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def ragged_sum_kernel(lengths_ref, x_ref, o_ref):
    b = pl.program_id(0)
    acc = jnp.zeros((1, 128), jnp.float32)
    n = lengths_ref[b]
    for row in range(n):  #!
        acc += x_ref[0, pl.ds(row, 1), :]
    o_ref[0] = acc


def ragged_sum(lengths, x):
    batch, rows, cols = x.shape
    return pl.pallas_call(
        ragged_sum_kernel,
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(batch,),
            in_specs=[pl.BlockSpec((1, rows, cols), lambda b, lengths: (b, 0, 0))],
            out_specs=pl.BlockSpec((1, 1, cols), lambda b, lengths: (b, 0, 0)),
        ),
        out_shape=jax.ShapeDtypeStruct((batch, 1, cols), x.dtype),
    )(lengths, x)
