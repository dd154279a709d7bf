# jax issue 25379: blocks of 128 of a vector
# jax: 0.4.35
# target: tpu:v5e
# expect: PAL201
# static: partly
# call: add(f32(1024), f32(1024))
# fails: compile

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

LANES = 128


def add_vectors_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def add(x, y):
    vec = pl.BlockSpec((LANES,), lambda i: (i,), memory_space=pltpu.VMEM)  #!
    return pl.pallas_call(
        add_vectors_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=x.shape[0] // LANES,
        in_specs=[vec, vec],
        out_specs=vec,
    )(x, y)


def main():
    import jax.numpy as jnp

    return add(jnp.arange(1024.0), jnp.ones(1024))
