# helion issue 2599: the block is the whole dimension that the index map walks along
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL307
# static: yes
# call: scale(f32(2, 4, 512, 128))
# fails: interpret

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

B, H, N, D = 2, 4, 512, 128


def scale_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 0.125


def scale(x):
    return pl.pallas_call(
        scale_kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((B, H, N, D), lambda j: (0, 0, j, 0))],
        out_specs=pl.BlockSpec((B, H, N, D), lambda j: (0, 0, j, 0)),  #!
        out_shape=jax.ShapeDtypeStruct((B, H, N, D), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
    )(x)
