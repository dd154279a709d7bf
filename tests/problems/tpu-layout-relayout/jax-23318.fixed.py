import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def spread_kernel(mask_ref, o_ref, *, n):
    row = mask_ref[...]
    o_ref[...] = jnp.broadcast_to(row, (n, row.shape[1]))


def spread_mask(mask, n=8):
    def kernel(mask_ref, o_ref):
        return spread_kernel(mask_ref, o_ref, n=n)

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        out_shape=jax.ShapeDtypeStruct((n, mask.shape[1]), mask.dtype),
    )(mask)
