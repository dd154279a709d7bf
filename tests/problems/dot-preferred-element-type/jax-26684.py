# jax issue 26684: a float16 product that also accumulates in float16
# jax: 0.12.0.1
# target: triton
# expect: PAL106
# static: yes
# call: matmul(f16(256, 64), f16(64, 256))
# fails: device

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

BM = BN = 64


def mm_kernel(x_ref, y_ref, z_ref):
    x = x_ref[...].astype(jnp.float16)
    y = y_ref[...].astype(jnp.float16)
    z_ref[...] = x @ y  #!


@jax.jit
def matmul(x, y):
    m, k = x.shape
    _, n = y.shape
    return pl.pallas_call(
        mm_kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.float16),
        grid=(m // BM, n // BN),
        in_specs=[pl.BlockSpec((BM, k), lambda i, j: (i, 0)), pl.BlockSpec((k, BN), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((BM, BN), lambda i, j: (i, j)),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x, y)
