"""Twins of working kernels with one mistake each, which has to be found. For jax from 0.10.2 on.

The line that a finding has to be at ends in `#!`; without one the launch or the function is enough.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton as plt
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
SCALARS = pl.BlockSpec(memory_space=pltpu.SMEM)
ROWS = pl.BlockSpec((8, 128), lambda i, *_: (i, 0))
PARAMS = pltpu.CompilerParams(dimension_semantics=("arbitrary",))
WARPS = plt.CompilerParams(num_warps=4)


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def on_line(function, x, check=False):
    mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=check))(x)


# Of output blocks that are come back to.


# pallas-lint: probe(f32[16,256])
def left_and_added_to_again(x):
    def kernel(x_ref, o_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += x_ref[...]

    return pl.pallas_call(
        kernel,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (0, j), pipeline_mode=pl.Buffered(1)),
        out_shape=like(x, (8, 256)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "arbitrary")),
    )(x)


# Of launches in a `shard_map`.


# pallas-lint: probe(f32[64,128])
def block_past_the_end_of_a_shard(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]

    def local(part):
        return pl.pallas_call(
            kernel,
            grid=(2,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i + 1, 0))],  #!
            out_specs=ROWS,
            out_shape=like(part),
            compiler_params=PARAMS,
        )(part)

    return on_line(local, x)


# pallas-lint: probe(f32[64,128])
def operation_that_tpus_have_not(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = lax.sort(x_ref[...], dimension=0)  #!

    def local(part):
        return pl.pallas_call(kernel, out_shape=like(part), compiler_params=pltpu.CompilerParams())(part)

    return on_line(local, x)


# pallas-lint: probe(f32[64,128])
def accumulator_of_a_shard_that_nobody_sets(x):
    def kernel(x_ref, o_ref):
        o_ref[...] += x_ref[...]

    def local(part):
        return pl.pallas_call(
            kernel,
            grid=(2,),
            in_specs=[ROWS],
            out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
            out_shape=like(part, (8, 128)),
            compiler_params=PARAMS,
        )(part)

    return on_line(local, x)


# pallas-lint: probe(f32[30,128])
def rows_that_an_explicit_axis_does_not_divide(x):
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,), devices=jax.devices()[:4])

    def local(part):
        return pl.pallas_call(lambda x_ref, o_ref: pltpu.sync_copy(x_ref, o_ref), out_shape=like(part))(part)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P("x", None), check_vma=False)(x)


# Of copies from device to device.


MEETING = pltpu.CompilerParams(collective_id=0)


def _remote(x, kernel, params=None):
    def local(part):
        return pl.pallas_call(
            kernel,
            in_specs=[ANYWHERE],
            out_specs=ANYWHERE,
            out_shape=like(part),
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
            compiler_params=params,
        )(part)

    return on_line(local, x)


# pallas-lint: probe(f32[32,128])
def neighbour_past_the_last_device(x):
    def kernel(x_ref, o_ref, sent, received):
        own = lax.axis_index("x")
        pltpu.sync_copy(x_ref, o_ref)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id={"x": own + 1})
        copy.start()  #!
        copy.wait()

    return _remote(x, kernel)


# pallas-lint: probe(f32[32,128])
def barrier_that_waits_for_too_many(x):
    def kernel(x_ref, o_ref, sent, received):
        right = lax.rem(lax.axis_index("x") + 1, 4)
        barrier = pltpu.get_barrier_semaphore()
        pl.semaphore_signal(barrier, 1, device_id={"x": right})
        pl.semaphore_wait(barrier, 2)  #!
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id={"x": right})
        copy.start()
        copy.wait()

    return _remote(x, kernel, MEETING)


# pallas-lint: probe(f32[32,128])
def arrival_that_nobody_waits_for(x):
    def kernel(x_ref, o_ref, sent, received):
        right = lax.rem(lax.axis_index("x") + 1, 4)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, device_id={"x": right})
        copy.start()
        copy.wait_send()

    return _remote(x, kernel)


# Of copies of as many rows as the data say.


def _moved(lengths, x, kernel):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        in_specs=[ANYWHERE],
        out_specs=ANYWHERE,
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=like(x))(lengths, x)


# pallas-lint: probe(i32[2]=[8,8], f32[16,128])
def second_copy_that_is_not_awaited(lengths, x):
    def kernel(lengths_ref, x_ref, o_ref, done):
        def move(slot):
            rows = pl.ds(slot * 8, lengths_ref[slot])
            return pltpu.make_async_copy(x_ref.at[rows], o_ref.at[rows], done)

        move(0).start()
        move(1).start()
        move(0).wait()

    return _moved(lengths, x, kernel)


# pallas-lint: probe(i32[2]=[8,0], f32[16,128])
def wait_for_a_copy_of_another_length(lengths, x):
    def kernel(lengths_ref, x_ref, o_ref, done):
        def move(slot, count):
            rows = pl.ds(slot * 8, count)
            return pltpu.make_async_copy(x_ref.at[rows], o_ref.at[rows], done)

        for slot in range(2):
            move(slot, lengths_ref[slot]).start()
        for slot in range(2):
            move(slot, 8).wait()

    return _moved(lengths, x, kernel)


# pallas-lint: probe(i32[2]=[8,16], f32[16,128])
def copy_past_the_end(lengths, x):
    def kernel(lengths_ref, x_ref, o_ref, done):
        for slot in range(2):
            rows = pl.ds(slot * 8, lengths_ref[slot])
            pltpu.async_copy(x_ref.at[rows], o_ref.at[rows], done).wait()

    return _moved(lengths, x, kernel)


# Of scalar memory and of the host's.


# pallas-lint: probe(f32[8,128])
def scalars_that_leave_too_late(x):
    def kernel(x_ref, o_ref, row, done):
        row[0, 0] = x_ref[0, 0]
        copy = pltpu.make_async_copy(row, o_ref, done)
        copy.start()
        row[0, 1] = x_ref[0, 1]  #!
        copy.wait()

    return pl.pallas_call(
        kernel,
        in_specs=[SCALARS],
        out_specs=ANYWHERE,
        out_shape=like(x, (1, 2)),
        scratch_shapes=[pltpu.SMEM((1, 2), x.dtype), pltpu.SemaphoreType.DMA],
    )(x)


# pallas-lint: probe(f32[16,128])
def host_memory_that_is_read_at_once(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...]  #!

    return pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pl.HOST)],
        out_shape=like(x),
        compiler_params=pltpu.CompilerParams(),
    )(x)


# Of operands that belong together.


# pallas-lint: probe(f32[8,128])
def zero_divided_by_zero_whatever_it_is_given(x):
    def kernel(x_ref, o_ref):
        centred = x_ref[...] - x_ref[...]
        o_ref[...] = centred / jnp.sum(centred * centred, axis=1, keepdims=True)  #!

    return pl.pallas_call(kernel, out_shape=like(x), compiler_params=pltpu.CompilerParams())(x)


# pallas-lint: probe(i32[1]=[8], f32[16,128])
def store_without_a_mask(at, x):
    def kernel(at_ref, x_ref, o_ref):
        o_ref[...] = jnp.zeros_like(o_ref)
        o_ref[pl.ds(pl.multiple_of(at_ref[0], 8), 16), :] = x_ref[...]  #!

    return pl.pallas_call(kernel, grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1), out_shape=like(x))(
        at, x
    )


# pallas-lint: probe(i32[2]=[1,4], f32[32,128])
def table_with_a_block_past_the_end(table, x):
    def kernel(table_ref, x_ref, o_ref):
        o_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))],  #!
        out_specs=ROWS,
    )
    return pl.pallas_call(kernel, grid_spec=spec, out_shape=like(x, (16, 128)))(table, x)


# Of launchers that look before they launch.


# pallas-lint: probe(f32[20,128])
def assertion_of_the_launchers_own(x):
    assert x.shape[0] % 8 == 0, "rows have to be a multiple of 8"  #!
    return pl.pallas_call(lambda x_ref, o_ref: pltpu.sync_copy(x_ref, o_ref), out_shape=like(x))(x)


# pallas-lint: probe(f32[32,128])
def in_an_interpreter_with_scratch_that_nobody_sets(x):
    def kernel(x_ref, o_ref, total):
        total[...] += x_ref[...]
        o_ref[...] = total[...]

    return pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ROWS,
        out_shape=like(x),
        scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
        compiler_params=PARAMS,
        interpret=pltpu.InterpretParams(),
    )(x)


# pallas-lint: probe(f32[3,16,128])
def branch_on_a_value_under_vmap(x):
    def kernel(x_ref, o_ref):
        if x_ref[0, 0] > 0:  #!
            o_ref[...] = x_ref[...]

    return jax.vmap(lambda x: pl.pallas_call(kernel, out_shape=like(x))(x))(x)


# pallas-lint: probe(f32[8,128], f32[16,128])
def alias_of_another_shape(x, old):
    def kernel(x_ref, old_ref, o_ref):
        o_ref[...] = x_ref[...]

    return pl.pallas_call(kernel, out_shape=like(x), input_output_aliases={1: 0})(x, old)


# For Triton.


# pallas-lint: probe(f32[1000])
def last_block_without_a_mask(x):
    def kernel(x_ref, o_ref):
        at = pl.program_id(0) * 256 + jnp.arange(256)
        o_ref[at] = x_ref[at] * 2.0  #!

    return pl.pallas_call(kernel, grid=(4,), out_shape=like(x), compiler_params=WARPS)(x)


# pallas-lint: probe(f32[6,100])
def block_that_is_no_power_of_two(x):
    def kernel(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2.0

    rows = pl.BlockSpec((1, 100), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(6,), in_specs=[rows], out_specs=rows, out_shape=like(x), compiler_params=WARPS)(
        x
    )


# For Mosaic GPU.


# pallas-lint: probe()
def different_numbers_by_the_blocks_of_a_cluster():
    def kernel(o_gmem, met):
        plgpu.barrier_arrive(met)
        plgpu.barrier_wait(met)
        o_gmem[...] = jnp.full((128,), lax.axis_index("c"), jnp.int32)  #!

    return plgpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((128,), jnp.int32),
        cluster=(2,),
        cluster_names=("c",),
        scratch_types=[plgpu.ClusterBarrier(collective_axes=("c",), num_arrivals=1)],
    )()


# pallas-lint: probe(f32[128,128])
def shared_memory_that_is_not_committed(x):
    def kernel(x_gmem, o_gmem, x_smem, o_smem, arrived):
        plgpu.copy_gmem_to_smem(x_gmem, x_smem, arrived)
        plgpu.barrier_wait(arrived)
        o_smem[...] = x_smem[...] + 1
        plgpu.copy_smem_to_gmem(o_smem, o_gmem)  #!
        plgpu.wait_smem_to_gmem(0)

    buffer = plgpu.SMEM(x.shape, x.dtype)
    return plgpu.kernel(kernel, out_type=like(x), scratch_types=[buffer, buffer, plgpu.Barrier()])(x)


# pallas-lint: probe(f32[256,128])
def consumer_that_never_arrives(x):
    def kernel(x_gmem, o_gmem, buffer, full, empty):
        own = lax.axis_index("wg")

        @pl.when(own == 0)
        def _produce():
            for step in range(4):
                if step:
                    plgpu.barrier_wait(empty)  #!
                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(step * 64, 64)], buffer, full)

        @pl.when(own == 1)
        def _consume():
            for step in range(4):
                plgpu.barrier_wait(full)
                o_gmem[pl.ds(step * 64, 64)] = buffer[...] + 3.0

    return plgpu.kernel(
        kernel,
        out_type=like(x),
        num_threads=2,
        thread_name="wg",
        scratch_types=[plgpu.SMEM((64, 128), x.dtype), plgpu.Barrier(), plgpu.Barrier()],
    )(x)


# pallas-lint: probe(f32[384,128])
def slot_that_is_filled_while_it_is_read(x):
    def kernel(x_gmem, o_gmem, came, arrived):
        for step in range(2):
            plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds(step * 64, 64)], came.at[step], arrived.at[step])
        for step in range(6):
            slot = step % 2
            plgpu.barrier_wait(arrived.at[slot])
            if step + 2 < 6:
                plgpu.copy_gmem_to_smem(x_gmem.at[pl.ds((step + 2) * 64, 64)], came.at[slot], arrived.at[slot])
            o_gmem[pl.ds(step * 64, 64)] = came[slot] - 1.0

    return plgpu.kernel(
        kernel,
        out_type=like(x),
        scratch_types=[plgpu.SMEM((2, 64, 128), x.dtype), plgpu.Barrier(num_barriers=2)],
    )(x)
