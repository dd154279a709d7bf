"""Flash attention for one head, in blocks of queries and keys."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def attention_kernel(q_ref, k_ref, v_ref, o_ref, acc_ref, max_ref, sum_ref, *, scale):
    step = pl.program_id(1)
    scores = jnp.dot(q_ref[...], k_ref[...].T) * scale
    best = jnp.maximum(max_ref[...], jnp.max(scores, axis=1, keepdims=True))
    weights = jnp.exp(scores - best)
    fade = jnp.exp(max_ref[...] - best)
    sum_ref[...] = sum_ref[...] * fade + jnp.sum(weights, axis=1, keepdims=True)
    acc_ref[...] = acc_ref[...] * fade + jnp.dot(weights, v_ref[...])
    max_ref[...] = best

    @pl.when(step == pl.num_programs(0) - 1)
    def _():
        o_ref[...] = (acc_ref[...] / sum_ref[...]).astype(o_ref.dtype)


def attention(q, k, v, *, bq=128, bk=128):
    rows, width = q.shape
    return pl.pallas_call(
        functools.partial(attention_kernel, scale=width**-0.5),
        grid=(rows // bq, k.shape[0] // bk),
        in_specs=[
            pl.BlockSpec((bq, width), lambda i, j: (i * bq, 0)),
            pl.BlockSpec((bk, width), lambda i, j: (j, 0)),
            pl.BlockSpec((bk, width), lambda i, j: (j, 0)),
        ],
        out_specs=pl.BlockSpec((bq, width), lambda i, j: (i, 0)),
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        scratch_shapes=[
            pltpu.VMEM((bq, width), jnp.float32),
            pltpu.VMEM((bq, 1), jnp.float32),
            pltpu.VMEM((bq, 1), jnp.float32),
        ],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
    )(q, k, v)


def reference(q, k, v):
    return jax.nn.softmax(q @ k.T * q.shape[1] ** -0.5, axis=1) @ v
