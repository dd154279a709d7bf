# jax issue 38497: the index map counts elements, but the unit is a block
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL301
# static: yes
# call: double(f32(64, 512))
# fails: wrong

import jax
from jax.experimental import pallas as pl

BLOCK_ROWS = 8
BLOCK_COLS = 128


def double_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def double(x):
    rows, cols = x.shape
    return pl.pallas_call(
        double_kernel,
        grid=(rows // BLOCK_ROWS, cols // BLOCK_COLS),
        in_specs=[pl.BlockSpec((BLOCK_ROWS, BLOCK_COLS), lambda i, j: (i, j * BLOCK_COLS))],  #!
        out_specs=pl.BlockSpec((BLOCK_ROWS, BLOCK_COLS), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
