"""Kernels that are slower than they need be, each with the argument that mends it."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def whole_rows(body, x, rows=256):
    block = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(body, grid=(x.shape[0] // rows,), in_specs=[block], out_specs=block, out_shape=x)(x)


def product(x, y, exact=True):
    def kernel(x_ref, y_ref, o_ref, acc_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc_ref[...] = jnp.zeros_like(acc_ref)

        precision = lax.Precision.HIGHEST if exact else None
        acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], precision=precision, preferred_element_type=jnp.float32)
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)

    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        kernel,
        grid=(m // 512, n // 512, k // 512),
        in_specs=[pl.BlockSpec((512, 512), lambda i, j, s: (i, s)), pl.BlockSpec((512, 512), lambda i, j, s: (s, j))],
        out_specs=pl.BlockSpec((512, 512), lambda i, j, s: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((512, 512), jnp.float32)],
    )(x, y)


def polynomial(x, wide=False):
    def kernel(x_ref, o_ref):
        x = x_ref[...].astype(jnp.float32) if wide else x_ref[...]
        for _ in range(16):
            x = x * x + x
        o_ref[...] = x.astype(o_ref.dtype)

    return whole_rows(kernel, x)


def rows_in_a_loop(x, whole=False):
    def kernel(x_ref, o_ref):
        @pl.loop(0, 1 if whole else 256)
        def _(i):
            rows = pl.ds(0, 256) if whole else pl.ds(i, 1)
            o_ref[rows, :] = jnp.exp(x_ref[rows, :]) * 2 + 1

    return whole_rows(kernel, x)


def scaled(x, scale, fetched_again=True):
    def kernel(x_ref, scale_ref, o_ref):
        o_ref[...] = x_ref[...] * scale_ref[...]

    def block(index_map):
        exchanged = (lambda j, i: index_map(i, j)) if fetched_again else index_map
        return pl.BlockSpec((512, 128), exchanged)

    return pl.pallas_call(
        kernel,
        grid=(16, 8) if fetched_again else (8, 16),
        in_specs=[block(lambda i, j: (i, j)), block(lambda i, j: (i, 0))],
        out_specs=block(lambda i, j: (i, j)),
        out_shape=x,
    )(x, scale)


def scores(q, k):
    def kernel(q_ref, k_ref, o_ref):
        total = jnp.zeros((512, 512), jnp.float32)
        for at in range(8):
            keys = k_ref[at * 512 : (at + 1) * 512, :]
            total += lax.dot_general(q_ref[...], keys, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
        o_ref[...] = total

    return pl.pallas_call(
        kernel,
        grid=(q.shape[0] // 512,),
        in_specs=[pl.BlockSpec((512, q.shape[1]), lambda i: (i, 0)), pl.BlockSpec(k.shape, lambda i: (0, 0))],
        out_specs=pl.BlockSpec((512, 512), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((q.shape[0], 512), jnp.float32),
    )(q, k)
