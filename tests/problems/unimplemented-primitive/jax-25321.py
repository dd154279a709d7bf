# jax issue 25321: two halves woven into one array
# jax: 0.4.35
# target: triton
# expect: PAL101
# static: yes
# call: unpack(i32(64))
# fails: lowering

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def interleave(lo, hi):
    return jnp.stack([lo, hi], -1).reshape(-1)  #!


def unpack_kernel(packed_ref, out_ref):
    packed = packed_ref[...]
    out_ref[...] = interleave(packed & 0xF, (packed >> 4) & 0xF)


def unpack(packed):
    n = packed.shape[0]
    return pl.pallas_call(
        unpack_kernel,
        out_shape=jax.ShapeDtypeStruct((2 * n,), jnp.int32),
        compiler_params=plgpu.TritonCompilerParams(num_warps=1),
    )(packed)
