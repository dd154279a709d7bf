import jax
from jax.experimental import pallas as pl


def negate_kernel(x_ref, o_ref):
    o_ref[...] = -x_ref[...]


def row_block(i):
    return (i, 0)


def negate(x, rows=8):
    specs = pl.BlockSpec((rows, x.shape[1]), row_block)
    return pl.pallas_call(
        negate_kernel,
        grid=(x.shape[0] // rows,),
        in_specs=[specs],
        out_specs=specs,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
