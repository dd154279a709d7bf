# sglang-jax issue 1262: a limit that the smaller VMEM of a newer chip cannot give
# jax: 0.12.0.1
# target: tpu:tpu7x
# expect: PAL213
# static: yes
# call: scale(f32(1024, 1024))
# fails: device

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

VMEM_LIMIT = 100 * 1024 * 1024


def scale_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def scale(x):
    rows, cols = x.shape
    return pl.pallas_call(
        scale_kernel,
        grid=(rows // 512,),
        in_specs=[pl.BlockSpec((512, cols), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((512, cols), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel",),
            vmem_limit_bytes=VMEM_LIMIT,  #!
        ),
    )(x)
