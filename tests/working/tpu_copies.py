"""Working TPU kernels that copy by themselves: buffers, semaphores, pipelines. For jax from 0.8.3 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _there_and_back(x_ref, o_ref, came, went, arrived, left):
    steps = x_ref.shape[0] // 8

    def read(at, slot):
        return pltpu.make_async_copy(x_ref.at[pl.ds(at * 8, 8), :], came.at[slot], arrived.at[slot])

    def write(at, slot):
        return pltpu.make_async_copy(went.at[slot], o_ref.at[pl.ds(at * 8, 8), :], left.at[slot])

    read(0, 0).start()

    def body(at, _):
        slot = lax.rem(at, 2)

        @pl.when(at + 1 < steps)
        def _():
            read(at + 1, lax.rem(at + 1, 2)).start()

        @pl.when(at >= 2)
        def _():
            write(at - 2, slot).wait()

        read(at, slot).wait()
        went[slot] = came[slot] * 2
        write(at, slot).start()

    lax.fori_loop(0, steps, body, None)
    for at in (steps - 2, steps - 1):
        write(at, at % 2).wait()


# pallas-lint: probe(f32[64,128])
def double_buffered_both_ways(x):
    buffers = pltpu.VMEM((2, 8, 128), x.dtype)
    return pl.pallas_call(
        _there_and_back,
        in_specs=[ANYWHERE],
        out_specs=ANYWHERE,
        out_shape=like(x),
        scratch_shapes=[buffers, buffers, pltpu.SemaphoreType.DMA((2,)), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def expected_double_buffered_both_ways(x):
    return x * 2


def _gathered(rows_ref, table_ref, o_ref, arrived):
    count = o_ref.shape[0]

    def row(i):
        return pltpu.make_async_copy(table_ref.at[rows_ref[i]], o_ref.at[i], arrived)

    for i in range(count):
        row(i).start()
    for i in range(count):
        row(i).wait()


# pallas-lint: probe(i32[8]=[3,1,0,2,7,6,5,4], f32[16,8,128])
def rows_by_many_copies(rows, table):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(1,),
        in_specs=[ANYWHERE],
        out_specs=pl.BlockSpec((8, 8, 128), lambda i, rows: (0, 0, 0)),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )
    return pl.pallas_call(_gathered, grid_spec=spec, out_shape=like(table, (8, 8, 128)))(rows, table)


def expected_rows_by_many_copies(rows, table):
    return table[rows]


def _next_block_ahead(x_ref, o_ref, buffer, arrived):
    step = pl.program_id(0)
    slot = lax.rem(step, 2)

    def fetch(at, slot):
        return pltpu.make_async_copy(x_ref.at[pl.ds(at * 8, 8)], buffer.at[slot], arrived.at[slot])

    @pl.when(step == 0)
    def _():
        fetch(0, 0).start()

    @pl.when(step + 1 < pl.num_programs(0))
    def _():
        fetch(step + 1, 1 - slot).start()

    fetch(step, slot).wait()
    o_ref[...] = buffer[slot] + 1


# pallas-lint: probe(f32[32,128])
def fetched_by_the_step_before(x):
    return pl.pallas_call(
        _next_block_ahead,
        grid=(4,),
        in_specs=[ANYWHERE],
        out_specs=ROWS,
        out_shape=like(x),
        scratch_shapes=[pltpu.VMEM((2, 8, 128), x.dtype), pltpu.SemaphoreType.DMA((2,))],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(x)


def expected_fetched_by_the_step_before(x):
    return x + 1


def _copied_whole(x_ref, o_ref):
    pltpu.sync_copy(x_ref, o_ref)


# pallas-lint: probe(f32[32,128])
def copied_in_hbm(x):
    return pl.pallas_call(_copied_whole, in_specs=[ANYWHERE], out_specs=ANYWHERE, out_shape=like(x))(x)


def expected_copied_in_hbm(x):
    return x


def _one_part(rows_ref, x_ref, old_ref, o_ref, done):
    del old_ref
    copy = pltpu.make_async_copy(x_ref, o_ref.at[pl.ds(rows_ref[0] * 8, 8)], done)
    copy.start()
    copy.wait()


# pallas-lint: probe(i32[1]=[2], f32[8,128], f32[32,128])
def part_of_an_alias(rows, x, cache):
    return pl.pallas_call(
        _one_part,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM), ANYWHERE],
        out_specs=ANYWHERE,
        out_shape=like(cache),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
        input_output_aliases={2: 0},
    )(rows, x, cache)


def expected_part_of_an_alias(rows, x, cache):
    return lax.dynamic_update_slice(cache, x, (rows[0] * 8, 0))


def _pipelined_matmul(x_ref, y_ref, o_ref, total):
    def step(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o_ref[...] = total[...].astype(o_ref.dtype)

    pltpu.emit_pipeline(
        step,
        grid=(x_ref.shape[0] // 128, y_ref.shape[1] // 128, x_ref.shape[1] // 128),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, j, k: (i, k)),
            pl.BlockSpec((128, 128), lambda i, j, k: (k, j)),
        ],
        out_specs=[pl.BlockSpec((128, 128), lambda i, j, k: (i, j))],
    )(x_ref, y_ref, o_ref)


# pallas-lint: probe(bf16[256,256], bf16[256,128])
def matmul_in_a_pipeline(x, y):
    return pl.pallas_call(
        _pipelined_matmul,
        in_specs=[ANYWHERE, ANYWHERE],
        out_specs=ANYWHERE,
        out_shape=like(x, (256, 128)),
        scratch_shapes=[pltpu.VMEM((128, 128), jnp.float32)],
    )(x, y)


def expected_matmul_in_a_pipeline(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


def _pipeline_in_a_pipeline(x_ref, o_ref, *, inner_steps):
    def outer_step(x_ref, o_ref):
        def inner_step(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        inner = pl.BlockSpec((8, 128), lambda j: (j, 0))
        pltpu.emit_pipeline(inner_step, grid=(inner_steps,), in_specs=[inner], out_specs=[inner])(x_ref, o_ref)

    outer = pl.BlockSpec((inner_steps * 8, 128), lambda i: (i, 0))
    pltpu.emit_pipeline(outer_step, grid=(x_ref.shape[0] // (inner_steps * 8),), in_specs=[outer], out_specs=[outer])(
        x_ref, o_ref
    )


# pallas-lint: probe(f32[64,128])
def pipeline_in_a_pipeline(x):
    return pl.pallas_call(
        functools.partial(_pipeline_in_a_pipeline, inner_steps=2),
        in_specs=[ANYWHERE],
        out_specs=ANYWHERE,
        out_shape=like(x),
    )(x)


def expected_pipeline_in_a_pipeline(x):
    return x * 2


def _summed(x_ref, o_ref, total):
    total[...] = jnp.zeros_like(total)

    def step(x_ref):
        total[...] += x_ref[...]

    pltpu.emit_pipeline(step, grid=(x_ref.shape[0] // 8,), in_specs=[ROWS], out_specs=[])(x_ref)
    o_ref[...] = total[...]


# pallas-lint: probe(f32[32,128])
def pipeline_without_outputs(x):
    return pl.pallas_call(
        _summed, in_specs=[ANYWHERE], out_shape=like(x, (8, 128)), scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)]
    )(x)


def expected_pipeline_without_outputs(x):
    return jnp.sum(x.reshape(4, 8, 128), axis=0)


def _signalled(x_ref, o_ref, ready):
    pl.semaphore_signal(ready, 2)
    pl.semaphore_wait(ready, 1)
    o_ref[...] = x_ref[...] + 1
    pl.semaphore_wait(ready, 1)


# pallas-lint: probe(f32[8,128])
def signals_and_waits(x):
    return pl.pallas_call(_signalled, out_shape=like(x), scratch_shapes=[pltpu.SemaphoreType.REGULAR])(x)


def expected_signals_and_waits(x):
    return x + 1


def _two_scopes(x_ref, o_ref):
    def outer(buffer, done):
        pltpu.async_copy(x_ref, buffer, done).wait()

        @functools.partial(pl.run_scoped, total=pltpu.VMEM((8, 128), jnp.float32))
        def _(total):
            total[...] = jnp.zeros_like(total)

            @pl.loop(0, buffer.shape[0] // 8)
            def _(at):
                total[...] += buffer[pl.ds(at * 8, 8), :]

            o_ref[...] = total[...]

    pl.run_scoped(outer, buffer=pltpu.VMEM(x_ref.shape, x_ref.dtype), done=pltpu.SemaphoreType.DMA)


# pallas-lint: probe(f32[32,128])
def scopes_in_scopes(x):
    return pl.pallas_call(_two_scopes, in_specs=[ANYWHERE], out_shape=like(x, (8, 128)))(x)


def expected_scopes_in_scopes(x):
    return jnp.sum(x.reshape(4, 8, 128), axis=0)
