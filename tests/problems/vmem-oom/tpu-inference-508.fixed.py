import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def matmul_kernel(x_ref, w_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)


def get_specs(bm, bn, k):
    x_spec = pl.BlockSpec((bm, k), lambda m, n: (m, 0))
    w_spec = pl.BlockSpec((k, bn), lambda m, n: (0, n))
    return [x_spec, w_spec], pl.BlockSpec((bm, bn), lambda m, n: (m, n))


def matmul(x, w):
    in_specs, out_specs = get_specs(512, 1024, 4096)
    return pl.pallas_call(
        matmul_kernel,
        grid=(8, 4),
        in_specs=in_specs,
        out_specs=out_specs,
        out_shape=jax.ShapeDtypeStruct((4096, 4096), jnp.float32),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel"), vmem_limit_bytes=96 * 2**20),
    )(x, w)


def main():
    x = jnp.zeros((4096, 4096), jnp.float32)
    return matmul(x, x)
