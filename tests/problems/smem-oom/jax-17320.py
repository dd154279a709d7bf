# jax issue 17320: tiles and stages beyond the shared memory of the card
# jax: 0.8.3
# target: triton:cuda
# expect: PAL213
# static: partly
# call: matmul(f32(1024, 1024), f32(1024, 1024))
# fails: device

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

BM = BN = 256
K = 1024


def mm_kernel(a_ref, b_ref, o_ref):
    o_ref[...] = jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)  #!


def matmul(a, b):
    return pl.pallas_call(
        mm_kernel,
        grid=(1024 // BM, 1024 // BN),
        in_specs=[pl.BlockSpec((BM, K), lambda i, j: (i, 0)), pl.BlockSpec((K, BN), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((BM, BN), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=8, num_stages=4),
    )(a, b)


def main():
    a = jnp.zeros((1024, 1024), jnp.float32)
    return matmul(a, a)
