"""Triton kernels whose block sizes are to be chosen, for gpu_order.py."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def matmul(a, b, bm=128, bn=128, bk=32, num_warps=4, num_stages=3):
    (m, k), n = a.shape, b.shape[1]

    def kernel(a_ref, b_ref, o_ref):
        def turn(i, sums):
            return sums + _dot(a_ref[:, pl.ds(i * bk, bk)], b_ref[pl.ds(i * bk, bk), :])

        o_ref[...] = lax.fori_loop(0, k // bk, turn, jnp.zeros((bm, bn), jnp.float32)).astype(o_ref.dtype)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), a.dtype),
        grid=(m // bm, n // bn),
        in_specs=[pl.BlockSpec((bm, k), lambda i, j: (i, 0)), pl.BlockSpec((k, bn), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        compiler_params=plgpu.CompilerParams(num_warps=num_warps, num_stages=num_stages),
    )(a, b)


def transposed(a, b, bm=128, bn=128, bk=32, num_warps=4, num_stages=3):
    """The product with a transposed matrix, and GELU of it."""
    (m, k), n = a.shape, b.shape[0]

    def kernel(a_ref, b_ref, o_ref):
        def turn(i, sums):
            return sums + _dot(a_ref[:, pl.ds(i * bk, bk)], b_ref[:, pl.ds(i * bk, bk)].T)

        sums = lax.fori_loop(0, k // bk, turn, jnp.zeros((bm, bn), jnp.float32))
        o_ref[...] = (sums / (1 + jnp.exp(-1.702 * sums))).astype(o_ref.dtype)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), a.dtype),
        grid=(m // bm, n // bn),
        in_specs=[pl.BlockSpec((bm, k), lambda i, j: (i, 0)), pl.BlockSpec((bn, k), lambda i, j: (j, 0))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        compiler_params=plgpu.CompilerParams(num_warps=num_warps, num_stages=num_stages),
    )(a, b)


def batched(a, b, bm=128, bn=128, bk=32, num_warps=4, num_stages=3):
    """Products of several matrices."""
    (several, m, k), n = a.shape, b.shape[2]

    def kernel(a_ref, b_ref, o_ref):
        def turn(i, sums):
            return sums + _dot(a_ref[:, pl.ds(i * bk, bk)], b_ref[pl.ds(i * bk, bk), :])

        o_ref[...] = lax.fori_loop(0, k // bk, turn, jnp.zeros((bm, bn), jnp.float32)).astype(o_ref.dtype)

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((several, m, n), a.dtype),
        grid=(m // bm, n // bn, several),
        in_specs=[
            pl.BlockSpec((None, bm, k), lambda i, j, at: (at, i, 0)),
            pl.BlockSpec((None, k, bn), lambda i, j, at: (at, 0, j)),
        ],
        out_specs=pl.BlockSpec((None, bm, bn), lambda i, j, at: (at, i, j)),
        compiler_params=plgpu.CompilerParams(num_warps=num_warps, num_stages=num_stages),
    )(a, b)


def gated(a, b, gate, bm=128, bn=64, bk=32, num_warps=4, num_stages=3):
    """A gated linear unit, with SiLU."""
    (m, k), n = a.shape, b.shape[1]

    def kernel(a_ref, b_ref, gate_ref, o_ref):
        def turn(i, sums):
            at = pl.ds(i * bk, bk)
            return sums[0] + _dot(a_ref[:, at], b_ref[at, :]), sums[1] + _dot(a_ref[:, at], gate_ref[at, :])

        zeros = jnp.zeros((bm, bn), jnp.float32)
        value, by = lax.fori_loop(0, k // bk, turn, (zeros, zeros))
        o_ref[...] = (value * by / (1 + jnp.exp(-by))).astype(o_ref.dtype)

    column = pl.BlockSpec((k, bn), lambda i, j: (0, j))
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), a.dtype),
        grid=(m // bm, n // bn),
        in_specs=[pl.BlockSpec((bm, k), lambda i, j: (i, 0)), column, column],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
        compiler_params=plgpu.CompilerParams(num_warps=num_warps, num_stages=num_stages),
    )(a, b, gate)


def attention(q, k, v, bq=128, bk=64, num_warps=4, num_stages=2):
    """Attention over all positions. Operands: (batch, positions, heads, dimension)."""
    batch, positions, heads, dimension = q.shape

    def kernel(q_ref, k_ref, v_ref, o_ref):
        q = q_ref[...]

        def turn(i, carry):
            values, top, total = carry
            at = pl.ds(i * bk, bk)
            scores = _dot(q, k_ref[at, :].T) * (1.44269504 * dimension**-0.5)
            new = jnp.maximum(top, jnp.max(scores, axis=1))
            less, weights = jnp.exp2(top - new), jnp.exp2(scores - new[:, None])
            values = values * less[:, None] + _dot(weights.astype(v_ref.dtype), v_ref[at, :])
            return values, new, total * less + jnp.sum(weights, axis=1)

        start = jnp.zeros((bq, dimension), jnp.float32), jnp.full((bq,), -jnp.inf), jnp.zeros((bq,))
        values, _, total = lax.fori_loop(0, positions // bk, turn, start)
        o_ref[...] = (values / total[:, None]).astype(o_ref.dtype)

    whole = pl.BlockSpec((None, positions, None, dimension), lambda i, j, h: (j, 0, h, 0))
    block = pl.BlockSpec((None, bq, None, dimension), lambda i, j, h: (j, i, h, 0))
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
        grid=(positions // bq, batch, heads),
        in_specs=[block, whole, whole],
        out_specs=block,
        compiler_params=plgpu.CompilerParams(num_warps=num_warps, num_stages=num_stages),
    )(q, k, v)


def _dot(a, b):
    return jnp.dot(a, b, preferred_element_type=jnp.float32)
