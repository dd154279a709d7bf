# jax-triton issue 170: an empty index for a block of two dimensions, and ten columns
# jax: 0.8.3
# target: triton
# expect: PAL107
# static: partly
# call: copy(f32(8, 10))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def copy_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1  #!


def copy(x):
    spec = pl.BlockSpec((4, 10), lambda i: (i, 0))
    return pl.pallas_call(
        copy_kernel,
        grid=(2,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((8, 10), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=1),
    )(x)
