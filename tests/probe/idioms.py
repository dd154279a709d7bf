"""Kernels in idioms that are hard to judge, working ones beside broken ones; run only by the probe's worker."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import tpu_sc as plsc
from jax.extend.core import Primitive

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
SUMS = jax.ShapeDtypeStruct((8, 256), jnp.float32)


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


# -- blocks that are come back to ------------------------------------------------------------------------------------


def _add_rows(x_ref, *outs):
    for o_ref in outs:

        @pl.when(pl.program_id(0) == 0)
        def _(o_ref=o_ref):
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]


def _sums(x, *modes):
    specs = [pl.BlockSpec((8, 128), lambda i, j: (0, j), pipeline_mode=pl.Buffered(1, revisit=mode)) for mode in modes]
    rows = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return pl.pallas_call(_add_rows, grid=(2, 2), in_specs=[rows], out_specs=specs, out_shape=[SUMS] * len(modes))(x)


def revisited_at_any_time(x):
    return _sums(x, pl.RevisitMode.ANY, pl.RevisitMode.ANY)


def revisited_at_once_only(x):
    return _sums(x, pl.RevisitMode.IMMEDIATE)


def revisited_one_of_two(x):
    return _sums(x, pl.RevisitMode.ANY, None)


# -- copies that operands decide about -------------------------------------------------------------------------------


def _steered(body):
    def launch(lengths, x):
        spec = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, in_specs=[ANYWHERE], out_specs=ANYWHERE, scratch_shapes=[pltpu.SemaphoreType.DMA]
        )
        return pl.pallas_call(body, grid_spec=spec, out_shape=like(x))(lengths, x)

    return launch


def _copy(lengths, x_hbm, o_hbm, sem, at, size=None):
    rows = pl.ds(at * 8, lengths[at] if size is None else size)
    return pltpu.make_async_copy(x_hbm.at[rows], o_hbm.at[rows], sem)


@_steered
def of_lengths(*refs):
    for at in range(2):
        _copy(*refs, at).start()
    for at in range(2):
        _copy(*refs, at).wait()


@_steered
def of_lengths_guarded(lengths, *refs):
    for at in range(2):

        @pl.when(lengths[at] > 0)
        def _(at=at):
            _copy(lengths, *refs, at, 8).start()
            _copy(lengths, *refs, at, 8).wait()


@_steered
def of_lengths_not_awaited(*refs):
    for at in range(2):
        _copy(*refs, at).start()


@_steered
def of_lengths_awaited_whole(*refs):
    for at in range(2):
        _copy(*refs, at).start()
    for at in range(2):
        _copy(*refs, at, 8).wait()


@_steered
def half_whatever_lengths(*refs):
    _copy(*refs, 0, 8).start()
    _copy(*refs, 0, 8).wait()


def _rows_of_a_table(table, x_hbm, o_hbm, sem, rows, scattered=False):
    def copy_row(at, carry):
        there, here = x_hbm.at[pl.ds(table[at], 1)], o_hbm.at[pl.ds(at, 1)]
        if scattered:
            there, here = x_hbm.at[pl.ds(at, 1)], o_hbm.at[pl.ds(table[at], 1)]
        copy = pltpu.make_async_copy(there, here, sem)
        copy.start()
        copy.wait()
        return carry

    jax.lax.fori_loop(0, rows, copy_row, 0)


@_steered
def gathered(*refs):
    _rows_of_a_table(*refs, rows=8)


@_steered
def gathered_but_one(*refs):
    _rows_of_a_table(*refs, rows=7)


@_steered
def scattered(*refs):
    _rows_of_a_table(*refs, rows=7, scattered=True)


def _through_scratch(body):
    def launch(x):
        scratch = [pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.DMA]
        return pl.pallas_call(body, out_specs=ANYWHERE, out_shape=like(x), scratch_shapes=scratch)(x)

    return launch


@_through_scratch
def half_of_scratch_copied(x_ref, o_hbm, rows, sem):
    rows[:8] = x_ref[:8]
    pltpu.async_copy(rows, o_hbm, sem).wait()


@_through_scratch
def half_of_scratch_added(x_ref, o_hbm, rows, sem):
    rows[:8] = x_ref[:8]
    rows[...] += x_ref[...]
    pltpu.async_copy(rows, o_hbm, sem).wait()


# -- scalar memory ---------------------------------------------------------------------------------------------------


def _put(x_ref, o_hbm, row, sem):
    row[0, 0] = x_ref[0, 0]
    row[0, 1] = x_ref[0, 1]
    pltpu.async_copy(row, o_hbm, sem).wait()


def scalars_copied_out(x):
    return pl.pallas_call(
        _put,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
        out_specs=ANYWHERE,
        out_shape=jax.ShapeDtypeStruct((1, 2), x.dtype),
        scratch_shapes=[pltpu.SMEM((1, 2), x.dtype), pltpu.SemaphoreType.DMA],
    )(x)


def _with_table(table, x_ref, o_ref):
    o_ref[...] = x_ref[...] * table[0, 0]


def table_in_scalar_memory(table, x):
    block = pl.BlockSpec((8, 128), lambda i, table: (i, 0))
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[block], out_specs=block)
    return pl.pallas_call(_with_table, grid_spec=spec, out_shape=like(x))(table, x)


# -- vectors of bytes ------------------------------------------------------------------------------------------------


def _whatever(x_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)


def bytes_in_blocks(x):
    block = pl.BlockSpec((10 << 20,), lambda i: (i,))
    kept = pl.BlockSpec((8, 128), lambda i: (0, 0))
    grid = (x.size >> 20) // 10
    out = jax.ShapeDtypeStruct((8, 128), jnp.float32)
    return pl.pallas_call(_whatever, grid=(grid,), in_specs=[block], out_specs=kept, out_shape=out)(x)


# -- outputs that are read first -------------------------------------------------------------------------------------


def _add_to_output(x_ref, _, o_ref):
    o_ref[...] += x_ref[...]


def added_to_alias(x, y):
    return pl.pallas_call(_add_to_output, out_shape=like(x), input_output_aliases={1: 0})(x, y)


def added_to_output(x, y):
    return pl.pallas_call(_add_to_output, out_shape=like(x))(x, y)


# -- grids that are data ---------------------------------------------------------------------------------------------


def _add_up(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


def first_rows_summed(x, steps):
    block, kept = pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((8, 128), lambda i: (0, 0))
    out = jax.ShapeDtypeStruct((8, 128), x.dtype)
    return pl.pallas_call(_add_up, grid=(steps,), in_specs=[block], out_specs=kept, out_shape=out)(x)


# -- blocks and warpgroups of a GPU ----------------------------------------------------------------------------------


def _on_cluster(body):
    return plgpu.kernel(
        body, out_type=jax.ShapeDtypeStruct((128,), jnp.int32), cluster=(2,), cluster_names=("c",),
        scratch_types=[plgpu.SMEM((128,), jnp.int32)],
    )()  # fmt: skip


def the_same_by_two_blocks():
    def body(o_gmem, buffer):
        buffer[...] = jnp.ones((128,), jnp.int32)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(buffer, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    return _on_cluster(body)


def others_by_two_blocks():
    def body(o_gmem, buffer):
        buffer[...] = jnp.full((128,), lax.axis_index("c"), jnp.int32)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(buffer, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    return _on_cluster(body)


def warps_in_forced_interpreter(x):
    def body(x_gmem, o_gmem, buffer, barrier):
        @pl.core_map(plgpu.WarpMesh(axis_name="warp"))
        def _():
            @pl.when(lax.axis_index("warp") == 0)
            def _():
                plgpu.copy_gmem_to_smem(x_gmem, buffer, barrier)

        plgpu.barrier_wait(barrier)
        plgpu.copy_smem_to_gmem(buffer, o_gmem)
        plgpu.wait_smem_to_gmem(0)

    launch = plgpu.kernel(body, out_type=like(x), scratch_types=[plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier()])
    with plgpu.force_gpu_interpret_mode():
        return launch(x)


# -- SparseCores -----------------------------------------------------------------------------------------------------


def _rows_of_subcores(x_hbm, o_hbm, buffer, *, past=0):
    count = buffer.shape[0]
    at = (lax.axis_index("core") * 16 + lax.axis_index("subcore")) * count
    pltpu.sync_copy(x_hbm.at[pl.ds(at + past, count)], buffer)
    pltpu.sync_copy(buffer, o_hbm.at[pl.ds(at, count)])


def _on_subcores(x, body):
    mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=2, num_subcores=16)
    buffer = pltpu.VMEM((x.shape[0] // 32, x.shape[1]), x.dtype)
    return pl.kernel(body, out_type=like(x), mesh=mesh, scratch_types=[buffer])(x)


def rows_of_subcores(x):
    return _on_subcores(x, _rows_of_subcores)


def rows_gathered_by_subcores(x, index):
    def body(x_hbm, index_hbm, o_hbm, places, buffer):
        pltpu.sync_copy(index_hbm, places)
        pltpu.sync_copy(x_hbm.at[places], buffer)
        pltpu.sync_copy(buffer, o_hbm)

    mesh = plsc.VectorSubcoreMesh(core_axis_name="core", subcore_axis_name="subcore", num_cores=2, num_subcores=16)
    rows = (index.shape[0], x.shape[1])
    scratch = [pltpu.VMEM(index.shape, index.dtype), pltpu.VMEM(rows, x.dtype)]
    return pl.kernel(body, out_type=jax.ShapeDtypeStruct(rows, x.dtype), mesh=mesh, scratch_types=scratch)(x, index)


def rows_past_the_end_of_subcores(x):
    return _on_subcores(x, lambda *refs: _rows_of_subcores(*refs, past=x.shape[0] - 4))


def copied_in_run_state(x):
    def launch(refs):
        pl.pallas_call(functools.partial(pltpu.sync_copy, *refs), out_shape=[])()

    return pl.run_state(launch)((x, jnp.zeros_like(x)))[1]


def copied_between_references(x):
    refs = [jax.new_ref(x), jax.new_ref(jnp.zeros_like(x))]

    def kernel(o_ref):
        pltpu.sync_copy(*refs)
        o_ref[...] = jnp.zeros_like(o_ref)

    pl.pallas_call(kernel, out_shape=like(x))()
    return refs[1][...]


def pipelined_by_no_index(x):
    def kernel(x_hbm, o_hbm):
        def body(x_ref, o_ref):
            o_ref[...] = x_ref[...]

        rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
        first = pl.BlockSpec((8, 128), lambda: (0, 0))  # PAL302
        pltpu.emit_pipeline(body, grid=(2,), in_specs=[first], out_specs=rows)(x_hbm, o_hbm)

    return pl.pallas_call(kernel, in_specs=[ANYWHERE], out_specs=ANYWHERE, out_shape=like(x))(x)


def _through_blocks(body, x):
    def kernel(x_hbm, o_hbm):
        rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
        pltpu.emit_pipeline(body, grid=(2,), in_specs=[rows], out_specs=rows)(x_hbm, o_hbm)

    return pl.pallas_call(kernel, in_specs=[ANYWHERE], out_specs=ANYWHERE, out_shape=like(x))(x)


def added_to_blocks_within(x):
    def body(x_ref, o_ref):
        o_ref[...] += x_ref[...]

    return _through_blocks(body, x)


def half_of_blocks_within(x):
    def body(x_ref, o_ref):
        o_ref[:4] = x_ref[:4]

    return _through_blocks(body, x)


_pack = Primitive("pack_dtype")  # as jax's fuser has it in kernels that it rewrites
_pack.def_abstract_eval(lambda x: x)


def packed_for_the_fuser(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = _pack.bind(x_ref[...])

    return pl.pallas_call(kernel, out_shape=like(x))(x)


# -- what is no launcher ---------------------------------------------------------------------------------------------


def double_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def double(x):
    return pl.pallas_call(double_kernel, out_shape=like(x))(x)


def kernel_from_elsewhere(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
