# jax issue 20001: the reduction runs along the outer axis of the grid
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL403
# static: yes
# call: column_sums(f32(512, 256))
# fails: interpret

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def sums_kernel(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def init():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.sum(x_ref[...].reshape(-1, 8, 128), axis=0)


def column_sums(x, bm=128, bn=128):
    m, n = x.shape
    grid_spec = pl.GridSpec(
        grid=(m // bm, n // bn),
        in_specs=[pl.BlockSpec((bm, bn), lambda k, j: (k, j))],
        out_specs=pl.BlockSpec((8, bn), lambda k, j: (0, j)),  #!
    )
    return pl.pallas_call(
        sums_kernel,
        grid_spec=grid_spec,
        out_shape=jax.ShapeDtypeStruct((8, n), x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
