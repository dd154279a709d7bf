"""Kernels whose defect stands beside another one, or where no interpreter says which line it is in."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P

HBM = pl.BlockSpec(memory_space=pl.ANY)
DMA = pltpu.SemaphoreType.DMA


def scatter(at, x, rows=24):
    """Copies blocks of eight rows to where `at` says, all at once."""

    def kernel(at_ref, x_hbm, o_hbm, sem):
        blocks = x.shape[0] // 8
        copies = [
            pltpu.make_async_copy(x_hbm.at[pl.ds(8 * i, 8)], o_hbm.at[pl.ds(at_ref[i], 8)], sem) for i in range(blocks)
        ]
        for copy in copies:
            copy.start()  # scatters
        for copy in copies:
            copy.wait()

    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, in_specs=[HBM], out_specs=HBM, scratch_shapes=[DMA])
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=jax.ShapeDtypeStruct((rows, 128), jnp.float32))(at, x)


def _on_four(kernel, x, slots):
    def local(part):
        return pl.pallas_call(
            kernel, in_specs=[HBM], out_specs=HBM, scratch_shapes=[DMA, DMA],
            out_shape=jax.ShapeDtypeStruct((slots, 8, 128), jnp.float32),
            compiler_params=pltpu.CompilerParams(collective_id=0),
        )(part)  # fmt: skip

    mesh = jax.sharding.Mesh(jax.devices()[:4], ("x",))
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(x)


def _barrier(me):
    barrier = pltpu.get_barrier_semaphore()
    for away in range(1, 4):
        pl.semaphore_signal(barrier, 1, device_id=(me + away) % 4)
    pl.semaphore_wait(barrier, 3)


def put(x, slots=5, back=0):
    """Each device writes into slot `me + 1 - back` of its neighbour's."""

    def kernel(x_hbm, o_hbm, send, recv):
        me = jax.lax.axis_index("x")
        _barrier(me)
        copy = pltpu.make_async_remote_copy(x_hbm, o_hbm.at[me + 1 - back], send, recv, device_id=(me + 1) % 4)
        copy.start()  # puts
        copy.wait()

    return _on_four(kernel, x, slots)


def last_not_awaited(x):
    """The last copy is not waited for: an error, at the line of a warning."""

    def kernel(x_hbm, o_hbm, send, recv):
        me = jax.lax.axis_index("x")
        _barrier(me)
        copy = None
        for i in range(3):
            if copy is not None:
                copy.wait()
            source = x_hbm if i == 0 else o_hbm.at[i - 1]
            copy = pltpu.make_async_remote_copy(source, o_hbm.at[i], send, recv, device_id=(me + 1) % 4)
            copy.start()  # passes on

    return _on_four(kernel, x, 4)
