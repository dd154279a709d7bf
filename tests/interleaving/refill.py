"""The kernel of the documentation's page on Mosaic GPU: one warpgroup fetches for another, in two slots by turns."""

import inspect

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

_TAKES = inspect.signature(plgpu.kernel).parameters


def launch(kernel, x, *scratch):
    out, scratch_name = ("out_type", "scratch_types") if "out_type" in _TAKES else ("out_shape", "scratch_shapes")
    more = {out: jax.ShapeDtypeStruct(x.shape, x.dtype), scratch_name: list(scratch)}
    return plgpu.kernel(kernel, num_threads=2, thread_name="wg", **more)(x)


# --8<-- [start:race]
def double_kernel(x_gmem, o_gmem, slots, full):
    def fetch(i, _):
        slot = lax.rem(i, 2)
        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(i * 64, 64)], slots.at[slot], full.at[slot])

    def compute(i, _):
        slot = lax.rem(i, 2)
        plgpu.barrier_wait(full.at[slot])
        o_gmem[pl.ds(i * 64, 64)] = slots[slot] * 2

    steps = x_gmem.shape[0] // 64
    pl.when(lax.axis_index("wg") == 0)(lambda: lax.fori_loop(0, steps, fetch, None))
    pl.when(lax.axis_index("wg") == 1)(lambda: lax.fori_loop(0, steps, compute, None))


def double(x):
    return launch(double_kernel, x, plgpu.SMEM((2, 64, 128), jnp.float32), plgpu.Barrier(num_barriers=2))


# --8<-- [end:race]


# --8<-- [start:mended]
def double_in_turn_kernel(x_gmem, o_gmem, slots, full, empty):
    def fetch(i, _):
        slot = lax.rem(i, 2)
        pl.when(i >= 2)(lambda: plgpu.barrier_wait(empty.at[slot]))
        plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(i * 64, 64)], slots.at[slot], full.at[slot])

    def compute(i, _):
        slot = lax.rem(i, 2)
        plgpu.barrier_wait(full.at[slot])
        o_gmem[pl.ds(i * 64, 64)] = slots[slot] * 2
        plgpu.barrier_arrive(empty.at[slot])

    # --8<-- [end:mended]

    steps = x_gmem.shape[0] // 64
    pl.when(lax.axis_index("wg") == 0)(lambda: lax.fori_loop(0, steps, fetch, None))
    pl.when(lax.axis_index("wg") == 1)(lambda: lax.fori_loop(0, steps, compute, None))


def double_in_turn(x):
    barriers = plgpu.Barrier(num_barriers=2), plgpu.Barrier(num_barriers=2)
    return launch(double_in_turn_kernel, x, plgpu.SMEM((2, 64, 128), jnp.float32), *barriers)
