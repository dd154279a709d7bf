# jax issue 17725: two outputs, one output spec
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL305
# static: partly
# call: split(f32(32, 128))
# fails: trace

import jax
from jax.experimental import pallas as pl


def split_kernel(x_ref, pos_ref, neg_ref):
    x = x_ref[...]
    pos_ref[...] = x * (x > 0)
    neg_ref[...] = x * (x <= 0)


def split(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(  #!
        split_kernel,
        grid=(4,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=(out, out),
    )(x)
