# jax issue 19399: atomic additions into an output that is not zeroed
# jax: 0.8.3
# target: triton
# expect: PAL401
# static: yes
# call: histogram(i32(1024))
# fails: wrong

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

BINS = 64


def histogram_kernel(x_ref, counts_ref):
    bins = x_ref[...] % BINS
    plgpu.atomic_add(counts_ref, (bins,), jnp.ones_like(bins))  #!


def histogram(x, block=256):
    return pl.pallas_call(
        histogram_kernel,
        grid=(pl.cdiv(x.size, block),),
        in_specs=[pl.BlockSpec((block,), lambda i: (i,))],
        out_specs=pl.BlockSpec((BINS,), lambda i: (0,)),
        out_shape=jax.ShapeDtypeStruct((BINS,), jnp.int32),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)
