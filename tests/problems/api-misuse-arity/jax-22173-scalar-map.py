# jax issue 22173: one number for a block of two dimensions
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL303
# static: yes
# call: negate(f32(64, 128))
# fails: trace

import jax
from jax.experimental import pallas as pl


def negate_kernel(x_ref, o_ref):
    o_ref[...] = -x_ref[...]


def row_block(i):
    return i  #!


def negate(x, rows=8):
    specs = pl.BlockSpec((rows, x.shape[1]), row_block)
    return pl.pallas_call(
        negate_kernel,
        grid=(x.shape[0] // rows,),
        in_specs=[specs],
        out_specs=specs,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
