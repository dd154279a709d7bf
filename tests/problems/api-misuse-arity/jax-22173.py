# jax issue 22173: the kernel returns its result
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL503
# static: yes
# call: triple(f32(8, 128))
# fails: trace

import jax
from jax.experimental import pallas as pl


def triple_kernel(x_ref, o_ref):
    scaled = x_ref[...] * 3.0
    return scaled  #!


@jax.jit
def triple(x: jax.Array) -> jax.Array:
    call = pl.pallas_call(triple_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))
    return call(x)
