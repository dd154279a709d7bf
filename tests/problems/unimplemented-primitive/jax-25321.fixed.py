import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def unpack_kernel(packed_ref, out_ref):
    packed = packed_ref[...]
    even = 2 * jnp.arange(packed.shape[0])
    out_ref[even] = packed & 0xF
    out_ref[even + 1] = (packed >> 4) & 0xF


def unpack(packed):
    n = packed.shape[0]
    return pl.pallas_call(
        unpack_kernel,
        out_shape=jax.ShapeDtypeStruct((2 * n,), jnp.int32),
        compiler_params=plgpu.TritonCompilerParams(num_warps=1),
    )(packed)
