# jax issue 25230: a load by arrays of row and column numbers, which only Triton has
# jax: 0.4.35
# target: tpu:v5e
# expect: PAL209
# static: yes
# call: take_tile(f32(64, 256))
# fails: lowering

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def tile_kernel(x_ref, o_ref):
    rows = lax.broadcasted_iota(jnp.int32, (8, 128), 0)
    cols = lax.broadcasted_iota(jnp.int32, (8, 128), 1)
    tile = pl.load(x_ref, (rows, cols))  #!
    o_ref[...] = tile * 2.0


@jax.jit
def take_tile(x):
    return pl.pallas_call(
        tile_kernel,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
    )(x)
