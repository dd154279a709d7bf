import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BM, BN, K = 16, 64, 64


def mm_kernel(a_ref, b_ref, o_ref):
    o_ref[...] = jnp.dot(a_ref[...], b_ref[...], preferred_element_type=jnp.float32)


def matmul(a, b, interpret=False):
    return pl.pallas_call(
        mm_kernel,
        grid=(64 // BM, 64 // BN),
        in_specs=[
            pl.BlockSpec((BM, K), lambda i, j: (i, 0)),
            pl.BlockSpec((K, BN), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((BM, BN), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((64, 64), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
        interpret=interpret,
    )(a, b)


def test_matmul():
    a = jnp.ones((64, 64), jnp.float32)
    assert (matmul(a, a, interpret=True) == 64).all()
