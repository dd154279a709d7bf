"""Mosaic GPU kernels that values of their operands steer, and the ways on which values come to a launch."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from tests.interleaving.warpgroups import launch, store


def _copies(copied_gmem, x_gmem, o_gmem, smem, arrived):
    """Waits for a copy that begins only where the operand reports it."""

    @pl.when(copied_gmem[0] != 0)
    def _():
        plgpu.copy_gmem_to_smem(x_gmem, smem, arrived)

    plgpu.barrier_wait(arrived)
    store(smem, o_gmem)


def _launched(copied, x):
    return launch(_copies, x.shape, x.dtype, plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier())(copied, x)


def plain(copied, x):
    return _launched(copied, x)


def jitted(copied, x):
    return jax.jit(lambda x: jax.jit(_launched)(copied, x))(x)


def computed(copied, x):
    return _launched(jnp.cumsum(jnp.tile(copied, 2))[-1:], x)


def closed_over(x, copied):
    return _launched(jnp.full(1, copied, jnp.int32), x)


def with_a_rule(copied, x):
    """As jax's own `ragged_dot` does it."""
    own = jax.custom_batching.custom_vmap(_launched)
    own.def_vmap(lambda size, batched, *operands: (lax.map(lambda each: _launched(*each), operands), True))
    return own(copied, x)


def branched(copied, x):
    return lax.cond(copied[0] < 2, _launched, lambda copied, x: x, copied, x)


def in_a_loop(copied, x):
    return lax.fori_loop(0, 3, lambda _, y: _launched(copied, y), x)


def with_state(copied, x, written=False):
    """References of `run_state`, into which something else may be written ahead of the launch."""

    def body(refs):
        copied_ref, x_ref, o_ref = refs
        if written:
            copied_ref[...] = copied_ref[...] * x_ref[0, 0].astype(copied_ref.dtype)

        @pl.core_map(plgpu.Mesh())
        def _():
            pl.run_scoped(
                lambda *scratch: _copies(copied_ref, x_ref, o_ref, *scratch),
                plgpu.SMEM(x.shape, x.dtype),
                plgpu.Barrier(),
            )

    return pl.run_state(body)((copied, x, jnp.zeros_like(x)))[2]


def overwritten(copied, x):
    """The kernel itself writes to what steers it."""

    def kernel(copied_gmem, x_gmem, o_gmem, *scratch):
        copied_gmem[0] = copied_gmem[0] + 1
        _copies(copied_gmem, x_gmem, o_gmem, *scratch)

    scratch = plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier()
    return launch(kernel, x.shape, x.dtype, *scratch)(copied, x)


def twice(x):
    """Two launches of one kernel with other values."""
    launched = launch(_copies, x.shape, x.dtype, plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier())
    y = launched(jnp.ones(1, jnp.int32), x)
    return launched(jnp.zeros(1, jnp.int32), y)


def scheduled(x, defect=""):
    """Clusters that take over the work of others, with one warpgroup that fetches and one that stores."""
    rows = 64
    threads = {"grid": (x.shape[0] // rows,), "grid_names": ("i",), "num_threads": 2, "thread_name": "wg"}

    def kernel(x_gmem, o_gmem, smem, full, free):
        wg = lax.axis_index("wg")

        @plgpu.dynamic_scheduling_loop(grid_names=("i",), thread_axis="wg")
        def _(info):
            [at] = info.index
            own = pl.ds(at * rows, rows)

            @pl.when(wg == 0)
            def _():
                @pl.when(info.local_index > 0)
                def _():
                    if defect != "not waited for":
                        plgpu.barrier_wait(free)

                plgpu.copy_gmem_to_smem(x_gmem.at[own], smem, full)

            @pl.when(wg == 1)
            def _():
                plgpu.barrier_wait(full)
                plgpu.copy_smem_to_gmem(smem, o_gmem.at[own])
                plgpu.wait_smem_to_gmem(0)

                @pl.when((at == 0) if defect == "freed once" else (at >= 0))
                def _():
                    plgpu.barrier_arrive(free)

    scratch = plgpu.SMEM((rows, 128), x.dtype), plgpu.Barrier(), plgpu.Barrier()
    return launch(kernel, x.shape, x.dtype, *scratch, **threads)(x)


def without_a_message(x):
    """It requests what only a GPU has, and goes wrong there for another reason."""
    assert jax.devices()[0].core_count
    raise ValueError("of GPUs")
