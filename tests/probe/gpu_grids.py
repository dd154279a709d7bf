"""Triton kernels whose steps share blocks of an output."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def over_rows(kernel, grid, rows=None):
    """Launches on blocks of 16 rows, which the first axis of the grid goes through; `rows`: of the whole output."""

    def run(x):
        block = pl.BlockSpec((16, 128), lambda i, *_: (i, 0))
        return pl.pallas_call(
            kernel,
            grid=grid,
            in_specs=[block],
            out_shape=jax.ShapeDtypeStruct((rows or x.shape[0], 128), x.dtype),
            compiler_params=plgpu.CompilerParams(num_warps=4),
            **({} if rows else {"out_specs": block}),
        )(x)

    return run


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def add_column(x_ref, o_ref):
    plgpu.store(o_ref.at[0:16, :], x_ref[...] + pl.program_id(1).astype(jnp.float32), mask=x_ref[...] > 0)


def store_last(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 3)
    def _():
        o_ref[...] = x_ref[...]


def store_last_by_mask(x_ref, o_ref):
    plgpu.store(o_ref.at[0:16, :], x_ref[...], mask=jnp.full((16, 128), pl.program_id(0) == 3))


def double_own_rows(x_ref, o_ref):
    o_ref[pl.ds(pl.program_id(0) * 16, 16), :] = x_ref[...] * 2


all_steps_store_all = over_rows(double, (4,), rows=16)
columns_store_one_block = over_rows(add_column, (4, 8))
columns_store_the_same = over_rows(double, (4, 8))
the_last_step_stores = over_rows(store_last, (4,), rows=16)
the_last_step_stores_by_mask = over_rows(store_last_by_mask, (4,), rows=16)
each_step_stores_its_rows = over_rows(double_own_rows, (4,), rows=64)
