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


def summed(x, y, guard=2, semantics="parallel"):
    """A product whose sum begins where axis `guard` of the grid is at 0: it should be the last one."""

    def kernel(x_ref, y_ref, o_ref, acc):
        @pl.when(pl.program_id(guard) == 0)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)  # sums
        o_ref[...] = acc[...]

    return pl.pallas_call(
        kernel,
        grid=(2, 2, 2),
        in_specs=[
            pl.BlockSpec((8, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))
        ],
        out_specs=pl.BlockSpec((8, 128), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=(semantics, semantics, "arbitrary")),
        out_shape=jax.ShapeDtypeStruct((16, 256), jnp.float32),
    )(x, y)  # fmt: skip


def running(x):
    """A running sum along an axis that is parallel: right on one core, in order."""

    def kernel(x_ref, o_ref, total):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += x_ref[...]  # runs
        o_ref[...] = total[...]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, grid=(4,), in_specs=[block], out_specs=block, scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)  # fmt: skip


def counts(x, set_first=False):
    """How many steps there were, in scratch that starts with whatever the memory held, and the sum of the blocks."""

    def kernel(x_ref, o_ref, total, seen):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[...] = jnp.zeros_like(total)
            if set_first:
                seen[...] = jnp.zeros_like(seen)

        seen[...] += jnp.ones_like(seen)  # counts
        total[...] += x_ref[...]
        o_ref[...] = total[...] - seen[...]

    return pl.pallas_call(
        kernel, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)), scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)] * 2,
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
    )(x)  # fmt: skip


def half_written(x, keep=4):
    """Copies half of an array of integers, of which the caller keeps the first `keep` blocks."""

    def kernel(x_hbm, o_hbm, sem):
        copy = pltpu.make_async_copy(x_hbm.at[:16], o_hbm.at[:16], sem)
        copy.start()
        copy.wait()

    whole = pl.pallas_call(
        kernel, in_specs=[HBM], out_specs=HBM, scratch_shapes=[DMA], out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype)
    )(x)
    return whole[: 8 * keep]


def block_sum(x, steps=4, first=0):
    """The sum of so many blocks, from the first one on."""

    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel, grid=(steps,), in_specs=[pl.BlockSpec((8, 128), lambda i: (i + first, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)), out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
    )(x)  # fmt: skip


def first_rows(x):
    """A copy of the first half: what is left out is left out of the output's shape, too."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernel, grid=(2,), in_specs=[block], out_specs=block, out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype)
    )(x)


def halves_multiplied(x):
    """The array is passed twice: one operand has its first half, the other one its second half."""

    def kernel(one_ref, other_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += one_ref[...] * other_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((8, 128), lambda i: (i + 2, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
    )(x, x)


def one_layer(x, weights, layer=0):
    """A product with one of several stacked matrices."""

    def kernel(x_ref, w_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)

    return pl.pallas_call(
        kernel,
        grid=(2,),
        in_specs=[
            pl.BlockSpec((8, 128), lambda k: (0, k)), pl.BlockSpec((None, 128, 128), lambda k: (layer, k, 0))
        ],
        out_specs=pl.BlockSpec((8, 128), lambda k: (0, 0)),
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
    )(x, weights)  # fmt: skip


def moved(x, scale=1, away=0, steps=4):
    """Copies blocks, the index of the input's being `scale * i + away`."""

    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    return pl.pallas_call(
        kernel, grid=(steps,), in_specs=[pl.BlockSpec((8, 128), lambda i: (scale * i + away, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((8 * steps, 128), x.dtype),
    )(x)  # fmt: skip


def late(x):
    """Sums rows of ragged blocks in scratch that is set one step too late."""

    def kernel(x_ref, o_ref, acc):
        @pl.when(pl.program_id(1) == 1)
        def _():
            acc[...] = jnp.zeros_like(acc)

        acc[...] += x_ref[...]  # adds
        o_ref[...] = acc[...]

    blocks = pl.BlockSpec((None, 8, 128), lambda i, j: (i, j, 0))
    return pl.pallas_call(
        kernel, grid=(2, 2), in_specs=[blocks], out_specs=blocks, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(x)  # fmt: skip
