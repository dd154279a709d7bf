# ROCm jax issue 764: every program adds to the same block
# jax: 0.8.3
# target: triton:rocm
# expect: PAL405
# static: yes
# call: total(f32(1024))
# fails: device

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def sum_kernel(x_ref, o_ref):
    partial_sum = jnp.sum(x_ref[...])

    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[0] = 0.0

    o_ref[0] += partial_sum  #!


def total(x, block=128):
    return pl.pallas_call(
        sum_kernel,
        grid=(x.shape[0] // block,),
        in_specs=[pl.BlockSpec((block,), lambda i: (i,))],
        out_specs=pl.BlockSpec((1,), lambda i: (0,)),
        out_shape=jax.ShapeDtypeStruct((1,), x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
