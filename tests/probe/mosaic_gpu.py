"""Mosaic GPU kernels that their interpreter must tell apart: right ones, and one with a mistake."""

import inspect

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

_TAKES = inspect.signature(plgpu.kernel).parameters
OUT = "out_type" if "out_type" in _TAKES else "out_shape"
SCRATCH = "scratch_types" if "scratch_types" in _TAKES else "scratch_shapes"


def launch(kernel, shape, *scratch, **grid):
    return plgpu.kernel(kernel, **{OUT: jax.ShapeDtypeStruct(shape, jnp.float32), SCRATCH: list(scratch)}, **grid)


def store(smem, gmem):
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(smem, gmem)
    plgpu.wait_smem_to_gmem(0)


def pipeline_of_inputs(x):
    def kernel(x_gmem, o_gmem, total):
        total[...] = jnp.zeros(total.shape, total.dtype)

        def step(_, x_smem):
            total[...] += x_smem[...]

        block = plgpu.BlockSpec((64, 64), lambda i: (i, 0))
        plgpu.emit_pipeline(step, grid=(x.shape[0] // 64,), in_specs=[block], max_concurrent_steps=2)(x_gmem)
        store(total, o_gmem)

    return launch(kernel, (64, 64), plgpu.SMEM((64, 64), jnp.float32))(x)


def rows_by_program_id(x):
    def kernel(x_gmem, o_gmem, x_smem, arrived):
        rows = pl.ds(pl.program_id(0) * 64, 64)
        plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
        plgpu.barrier_wait(arrived)
        store(x_smem, o_gmem.at[rows])

    buffer = plgpu.SMEM((64, x.shape[1]), jnp.float32)
    return launch(kernel, x.shape, buffer, plgpu.Barrier(), grid=(x.shape[0] // 64,), grid_names=("rows",))(x)


def two_copies_on_one_barrier(x):
    def kernel(x_gmem, o_gmem, x_smem, other, arrived):
        plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
        plgpu.copy_gmem_to_smem(x_gmem, other, arrived)
        plgpu.barrier_wait(arrived)
        store(x_smem, o_gmem)

    buffer = plgpu.SMEM(x.shape, jnp.float32)
    return launch(kernel, x.shape, buffer, buffer, plgpu.Barrier())(x)


def read_before_it_arrives(x):
    def kernel(x_gmem, o_gmem, x_smem, o_smem, arrived):
        plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
        o_smem[...] = x_smem[...] * 2  # read_before_it_arrives
        plgpu.barrier_wait(arrived)
        store(o_smem, o_gmem)

    buffer = plgpu.SMEM(x.shape, jnp.float32)
    return launch(kernel, x.shape, buffer, buffer, plgpu.Barrier())(x)


def no_layouts(x):
    def kernel(x_gmem, o_gmem):
        rows = plgpu.layout_cast(x_gmem[...], plgpu.Layout.WGMMA)
        strides = plgpu.layout_cast(x_gmem[...], plgpu.Layout.WG_STRIDED((64, 128), vec_size=2))
        o_gmem[...] = rows + strides

    params = plgpu.CompilerParams(lowering_semantics=plgpu.LoweringSemantics.Warpgroup)
    return launch(kernel, x.shape, compiler_params=params)(x)


def persistent(x):
    """As many blocks as there are multiprocessors, in pairs: none where only one is given."""
    blocks = jax.devices()[0].core_count // 2

    def kernel(x_gmem, o_gmem, x_smem, arrived):
        @pl.loop(jax.lax.axis_index("pairs"), x.shape[0] // 8, step=blocks)
        def _(at):
            rows = pl.ds(at * 8, 8)
            plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
            plgpu.barrier_wait(arrived)
            store(x_smem, o_gmem.at[rows])

    buffer = plgpu.SMEM((8, x.shape[1]), jnp.float32)
    return launch(kernel, x.shape, buffer, plgpu.Barrier(), grid=(blocks,), grid_names=("pairs",))(x)


def checks_for_cuda(x):
    assert jax.default_backend() == "gpu"
    return persistent(x)


def rows_from(start, x):
    def kernel(start_gmem, x_gmem, o_gmem, x_smem, arrived):
        rows = pl.ds(start_gmem[0], 64)
        plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
        plgpu.barrier_wait(arrived)
        store(x_smem, o_gmem)

    return launch(kernel, (64, x.shape[1]), plgpu.SMEM((64, x.shape[1]), jnp.float32), plgpu.Barrier())(start, x)
