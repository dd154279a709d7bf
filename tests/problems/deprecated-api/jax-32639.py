# jax issue 32639: a SparseCore kernel through pallas_call
# jax: 0.11.2
# target: tpu:v5e
# expect: PAL701
# static: yes
# call: copy(i32(8, 128))
# fails: trace

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def sc_copy(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def copy(x):
    return pl.pallas_call(
        sc_copy,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(kernel_type=pltpu.KernelType.SC_VECTOR_SUBCORE),  #!
    )(x)
