import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def iota_kernel(o_ref):
    i = pl.program_id(0)
    o_ref[i] = i


def program_numbers(size=8):
    return pl.pallas_call(
        iota_kernel,
        out_shape=jax.ShapeDtypeStruct((size,), jnp.int32),
        grid=(size,),
        out_specs=pl.BlockSpec(memory_space=pltpu.SMEM),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )()
