# jax issue 23318: a row of a mask repeated along the sublanes
# jax: 0.12.0.1
# target: tpu:v5e
# expect: PAL701
# static: yes
# call: spread_mask(f32(1, 16))
# fails: trace

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def spread_kernel(mask_ref, o_ref, *, n):
    row = mask_ref[...]
    o_ref[...] = pltpu.repeat(row, n, 0)  #!


def spread_mask(mask, n=8):
    def kernel(mask_ref, o_ref):
        return spread_kernel(mask_ref, o_ref, n=n)

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct((n, mask.shape[1]), mask.dtype),
    )(mask)
