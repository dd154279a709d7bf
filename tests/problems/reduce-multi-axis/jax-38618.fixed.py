import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def best_kernel(x_ref, at_ref):
    x = x_ref[...]
    rows, cols = x.shape
    number = jax.lax.broadcasted_iota(jnp.int32, x.shape, 0) * cols + jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)
    at_ref[0] = jnp.min(jnp.where(x == jnp.max(x), number, rows * cols))


def best(x):
    return pl.pallas_call(
        best_kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
        out_shape=jax.ShapeDtypeStruct((1,), jnp.int32),
    )(x)
