import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

BM = BN = 64
BK = 32
K = 1024


def mm_kernel(a_ref, b_ref, o_ref):
    def step(k, acc):
        a = a_ref[:, pl.ds(k * BK, BK)]
        b = b_ref[pl.ds(k * BK, BK), :]
        return acc + jnp.dot(a, b, preferred_element_type=jnp.float32)

    o_ref[...] = lax.fori_loop(0, K // BK, step, jnp.zeros((BM, BN), jnp.float32))


def matmul(a, b):
    return pl.pallas_call(
        mm_kernel,
        grid=(1024 // BM, 1024 // BN),
        in_specs=[pl.BlockSpec((BM, K), lambda i, j: (i, 0)), pl.BlockSpec((K, BN), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((BM, BN), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
        compiler_params=plgpu.CompilerParams(num_warps=4, num_stages=2),
    )(a, b)


def main():
    a = jnp.zeros((1024, 1024), jnp.float32)
    return matmul(a, a)
