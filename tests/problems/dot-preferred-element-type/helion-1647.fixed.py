import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def _matmul_kernel(lhs_ref, rhs_ref, out_ref, *, out_dtype):
    lhs = lhs_ref[...].astype(jnp.bfloat16)
    rhs = rhs_ref[...].astype(jnp.bfloat16)
    out_ref[...] = jnp.dot(lhs, rhs, preferred_element_type=jnp.float32).astype(out_dtype)


def matmul(lhs, rhs, *, bm=256, bn=256):
    (m, k), n = lhs.shape, rhs.shape[1]
    return pl.pallas_call(
        functools.partial(_matmul_kernel, out_dtype=lhs.dtype),
        grid=(pl.cdiv(m, bm), pl.cdiv(n, bn)),
        in_specs=[
            pl.BlockSpec((bm, k), lambda i, j: (i, 0)),
            pl.BlockSpec((k, bn), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), lhs.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
    )(lhs, rhs)
