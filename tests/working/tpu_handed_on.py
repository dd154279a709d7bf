"""Working TPU kernels with semaphores, keys, host memory and scalar memory as operands and results. From jax 0.10.2."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
SCALARS = pl.BlockSpec(memory_space=pltpu.SMEM)
SEMAPHORES = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
ROWS = pl.BlockSpec((8, 128), lambda i, *_: (i, 0))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


# A copy that one launch starts and another one waits for: the semaphore is handed from the one to the other.


def _begin(x_ref, o_ref, done):
    pltpu.make_async_copy(x_ref, o_ref, done).start()


def _end(x_ref, copied_ref, done, o_ref):
    pltpu.make_async_copy(x_ref, copied_ref, done).wait()


def begin(x):
    return pl.pallas_call(
        _begin,
        in_specs=[ANYWHERE],
        out_specs=[ANYWHERE, SEMAPHORES],
        out_shape=[like(x), pltpu.SemaphoreType.DMA(())],
        compiler_params=pltpu.CompilerParams(has_side_effects=True),
    )(x)


def end(x, copied, done):
    return pl.pallas_call(
        _end,
        in_specs=[ANYWHERE, ANYWHERE, SEMAPHORES],
        out_specs=ANYWHERE,
        out_shape=like(x),
        input_output_aliases={1: 0},
        compiler_params=pltpu.CompilerParams(has_side_effects=True),
    )(x, copied, done)


# pallas-lint: probe(f32[16,128])
def copy_that_ends_in_the_next_launch(x):
    return end(x, *begin(x))


def expected_copy_that_ends_in_the_next_launch(x):
    return x


# pallas-lint: probe(f32[16,128], f32[16,128])
def work_while_a_copy_is_under_way(x, y):
    @jax.jit
    def both(x, y):
        copied, done = begin(x)
        product = y * 2.0
        return end(x, copied, done) + product

    return both(x, y)


def expected_work_while_a_copy_is_under_way(x, y):
    return x + y * 2.0


# Keys of the TPU's own generator. What is returned does not depend on the numbers.


def _ones_for_a_key(key_ref, o_ref):
    del key_ref
    o_ref[...] = jnp.ones_like(o_ref)


# pallas-lint: probe()
def key_that_is_not_used():
    key = pltpu.to_pallas_key(jax.random.key(0))
    return pl.pallas_call(
        _ones_for_a_key,
        in_specs=[SCALARS],
        out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32),
        compiler_params=pltpu.CompilerParams(),
    )(key)


def expected_key_that_is_not_used():
    return jnp.ones((8, 128), jnp.float32)


def _floor_of_uniform(key_ref, x_ref, o_ref):
    noise = jax.random.uniform(key_ref[...], x_ref.shape)
    o_ref[...] = x_ref[...] + jnp.floor(noise)


# pallas-lint: probe(f32[8,128])
def numbers_drawn_with_a_key(x):
    key = pltpu.to_pallas_key(jax.random.key(7, impl="threefry2x32"))
    return pl.pallas_call(
        _floor_of_uniform,
        in_specs=[SCALARS, pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_shape=like(x),
        compiler_params=pltpu.CompilerParams(),
    )(key, x)


def expected_numbers_drawn_with_a_key(x):
    return x


# An array that lies in the host's memory.


def _fetched(x_ref, o_ref, done):
    pltpu.async_copy(x_ref, o_ref, done).wait()


# pallas-lint: probe(f32[16,128])
def fetched_from_the_host(x):
    return pl.pallas_call(
        _fetched,
        in_specs=[pl.BlockSpec(memory_space=pl.HOST)],
        out_specs=ANYWHERE,
        out_shape=like(x),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(x)


def expected_fetched_from_the_host(x):
    return x


# Scalar memory that is written and copied out.


def _corner(x_ref, o_ref, row, done):
    for column in range(4):
        row[0, column] = x_ref[0, column]
    copy = pltpu.make_async_copy(row, o_ref, done)
    copy.start()
    copy.wait()


# pallas-lint: probe(f32[8,128])
def scalars_copied_out(x):
    return pl.pallas_call(
        _corner,
        in_specs=[SCALARS],
        out_specs=ANYWHERE,
        out_shape=like(x, (1, 4)),
        scratch_shapes=[pltpu.SMEM((1, 4), x.dtype), pltpu.SemaphoreType.DMA],
    )(x)


def expected_scalars_copied_out(x):
    return x[:1, :4]


def _running_counts(x_ref, o_ref, counts, done):
    step = pl.program_id(0)
    counts[step] = x_ref[step] + jnp.where(step == 0, 0, counts[jnp.maximum(step - 1, 0)])

    @pl.when(step == pl.num_programs(0) - 1)
    def _():
        pltpu.async_copy(counts, o_ref, done).wait()


# pallas-lint: probe(i32[4])
def counts_of_all_steps_copied_out(x):
    return pl.pallas_call(
        _running_counts,
        grid=(4,),
        in_specs=[SCALARS],
        out_specs=ANYWHERE,
        out_shape=like(x),
        scratch_shapes=[pltpu.SMEM((4,), x.dtype), pltpu.SemaphoreType.DMA],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(x)


def expected_counts_of_all_steps_copied_out(x):
    return jnp.cumsum(x)


def _largest_of_each_step(x_ref, o_ref):
    o_ref[pl.program_id(0)] = jnp.max(x_ref[...])


# pallas-lint: probe(f32[32,128])
def output_in_scalar_memory(x):
    return pl.pallas_call(
        _largest_of_each_step,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=SCALARS,
        out_shape=like(x, (4,)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
    )(x)


def expected_output_in_scalar_memory(x):
    return jnp.max(x.reshape(4, -1), axis=1)


# Copies of as many rows as the data say; of none where a slot is padding.


def _ragged(lengths_ref, x_ref, o_ref, done):
    def move(slot):
        rows = pl.ds(slot * 8, lengths_ref[slot])
        return pltpu.make_async_copy(x_ref.at[rows], o_ref.at[rows], done)

    for slot in range(4):
        move(slot).start()
    for slot in range(4):
        move(slot).wait()


def move_rows(lengths, x, kernel, semaphores):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, in_specs=[ANYWHERE, ANYWHERE], out_specs=ANYWHERE, scratch_shapes=[semaphores]
    )
    return pl.pallas_call(
        lambda lengths_ref, x_ref, old_ref, o_ref, done: kernel(lengths_ref, x_ref, o_ref, done),
        grid_spec=spec,
        out_shape=like(x),
        input_output_aliases={2: 0},
    )(lengths, x, jnp.zeros_like(x))


def rows_that_were_moved(lengths, x):
    kept = jnp.arange(8)[None, :] < lengths[:, None]
    return jnp.where(kept.reshape(-1)[: x.shape[0], None], x, 0.0)


# pallas-lint: probe(i32[4]=[8,0,8,0], f32[32,128])
def padding_slots_of_length_zero(lengths, x):
    return move_rows(lengths, x, _ragged, pltpu.SemaphoreType.DMA)


def expected_padding_slots_of_length_zero(lengths, x):
    return rows_that_were_moved(lengths, x)


def _ragged_by_slots(lengths_ref, x_ref, o_ref, done):
    def move(slot):
        rows = pl.ds(slot * 8, lengths_ref[slot])
        return pltpu.make_async_copy(x_ref.at[rows], o_ref.at[rows], done.at[slot])

    def start(slot, _):
        move(slot).start()
        return _

    def wait(slot, _):
        move(slot).wait()
        return _

    lax.fori_loop(0, 4, start, None)
    lax.fori_loop(0, 4, wait, None)


# pallas-lint: probe(i32[4]=[0,0,0,8], f32[32,128])
def semaphore_for_each_slot_of_any_length(lengths, x):
    return move_rows(lengths, x, _ragged_by_slots, pltpu.SemaphoreType.DMA((4,)))


def expected_semaphore_for_each_slot_of_any_length(lengths, x):
    return rows_that_were_moved(lengths, x)


# pallas-lint: probe(i32[4]=[0,0,0,0], f32[32,128])
def nothing_to_move(lengths, x):
    return move_rows(lengths, x, _ragged, pltpu.SemaphoreType.DMA)


def expected_nothing_to_move(lengths, x):
    return rows_that_were_moved(lengths, x)
