"""Kernels of which the schedules beside this file are, and the probe's tests of costs ask."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

Params = getattr(pltpu, "CompilerParams", None) or pltpu.TPUCompilerParams


def rows(x, *, bm=8, bn=128, semantics=("arbitrary", "arbitrary")):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    spec = pl.BlockSpec((bm, bn), lambda i, j: (i, j))
    return pl.pallas_call(
        kernel, grid=(x.shape[0] // bm, x.shape[1] // bn), in_specs=[spec], out_specs=spec,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=Params(dimension_semantics=semantics),
    )(x)  # fmt: skip


def chosen_rows(picked, x):
    """Which block each step reads, and whether it computes, stands in a prefetched scalar."""

    def kernel(picked_ref, x_ref, o_ref):
        @pl.when(picked_ref[pl.program_id(0)] > 0)
        def _():
            o_ref[...] = jnp.exp(x_ref[...])

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(8,), in_specs=[pl.BlockSpec((256, 128), lambda i, s: (s[i], 0))],
        out_specs=pl.BlockSpec((256, 128), lambda i, s: (i, 0)),
    )  # fmt: skip
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(picked, x)


def product(x_ref, y_ref, o_ref, acc_ref, *, steps):
    @pl.when(pl.program_id(2) == 0)
    def _():
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == steps - 1)
    def _():
        o_ref[...] = acc_ref[...].astype(o_ref.dtype)


def matmul(x, y, *, bm=128, bk=128, bn=128):
    (m, k), n = x.shape, y.shape[1]
    return pl.pallas_call(
        functools.partial(product, steps=k // bk), grid=(m // bm, n // bn, k // bk),
        in_specs=[pl.BlockSpec((bm, bk), lambda i, j, s: (i, s)), pl.BlockSpec((bk, bn), lambda i, j, s: (s, j))],
        out_specs=pl.BlockSpec((bm, bn), lambda i, j, s: (i, j)), out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
        compiler_params=Params(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)  # fmt: skip
