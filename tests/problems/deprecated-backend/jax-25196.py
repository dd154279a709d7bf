# jax issue 25196: a kernel on the Triton backend
# jax: 0.12.0.1
# target: triton
# expect: PAL705
# static: yes
# call: gelu(f32(64, 128))
# fails: warning

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as pltriton  #!


def gelu_kernel(x_ref, o_ref):
    o_ref[...] = jax.nn.gelu(x_ref[...])


def gelu(x):
    params = pltriton.CompilerParams(num_warps=4, num_stages=1)
    return pl.pallas_call(
        gelu_kernel,
        grid=(x.shape[0] // 16,),
        in_specs=[pl.BlockSpec((16, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=params,
    )(x)
