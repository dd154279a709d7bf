# pytorch/xla issue 8429: no grid, so the whole of three arrays has to fit into VMEM
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL213
# static: yes
# call: add(f32(8192, 4096), f32(8192, 4096))
# fails: compile

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def add_kernel(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def add(x, y):
    return pl.pallas_call(  #!
        add_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x, y)


def main():
    x = jnp.ones((8192, 4096), jnp.float32)
    return add(x, x)
