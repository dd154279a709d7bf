# jax issue 20046: the exponential of a single number in VMEM
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL211
# static: partly
# call: exp_one(f32(1))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def exp_kernel(x_ref, o_ref):
    o_ref[0] = jnp.exp(x_ref[0])  #!


def exp_one(x):
    block = pl.BlockSpec((1,), lambda i: (i,))
    return pl.pallas_call(
        exp_kernel,
        grid=(1,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct((1,), x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
