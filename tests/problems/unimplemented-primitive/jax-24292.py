# jax issue 24292: a stencil by padding and cutting
# jax: 0.8.3
# target: triton
# expect: PAL101
# static: yes
# call: blur(f32(16, 64))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def blur_kernel(x_ref, o_ref):
    x = jnp.pad(x_ref[...], ((0, 0), (1, 1)))  #!
    o_ref[...] = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) / 3


def blur(img, rows=16):
    h, w = img.shape
    return pl.pallas_call(
        blur_kernel,
        grid=(h // rows,),
        in_specs=[pl.BlockSpec((rows, w), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((rows, w), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(img.shape, img.dtype),
        compiler_params=plgpu.CompilerParams(),
    )(img)
