import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

VALID = 20


def keep_valid_kernel(x_ref, o_ref):
    x = x_ref[...]
    position = jax.lax.broadcasted_iota(jnp.int32, x.shape, 0)
    o_ref[...] = jnp.where(position < VALID, x, 0.0)


def keep_valid(x):
    vmem = pl.BlockSpec(memory_space=pltpu.VMEM)
    call = pl.pallas_call(
        keep_valid_kernel,
        in_specs=[vmem],
        out_specs=vmem,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )
    return call(x)
