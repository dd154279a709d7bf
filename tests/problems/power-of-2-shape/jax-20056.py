# jax issue 20056: three elements of a ref on Triton
# jax: 0.8.3
# target: triton
# expect: PAL107
# static: yes
# call: middle(f32(8))
# fails: lowering

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

START, STOP = 2, 5


def middle_kernel(x_ref, o_ref):
    part = x_ref[START:STOP]  #!
    o_ref[0] = part.sum()


def middle(x):
    return pl.pallas_call(
        middle_kernel,
        out_shape=jax.ShapeDtypeStruct((1,), x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=1),
    )(x)
