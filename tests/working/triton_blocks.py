"""Working Triton kernels with atomics, loops over pointers and blocks of every kind, for jax from 0.8.3 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

FOUR_WARPS = plgpu.CompilerParams(num_warps=4, num_stages=2)


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _histogram(x_ref, zeros_ref, o_ref):
    del zeros_ref
    plgpu.atomic_add(o_ref, (x_ref[...],), jnp.ones(x_ref.shape, o_ref.dtype))


# pallas-lint: probe(i32[64])
def histogram(x):
    zeros = jnp.zeros((16,), jnp.float32)  # of integers added as an array, jax 0.11.2 leaves nothing on an H100
    return pl.pallas_call(
        _histogram,
        grid=(2,),
        in_specs=[pl.BlockSpec((32,), lambda i: (i,)), pl.BlockSpec((16,), lambda i: (0,))],
        out_specs=pl.BlockSpec((16,), lambda i: (0,)),
        out_shape=like(zeros),
        input_output_aliases={1: 0},
        compiler_params=FOUR_WARPS,
    )(x, zeros)


def expected_histogram(x):
    return jnp.zeros((16,), jnp.float32).at[x].add(1)


def _added_by_all(x_ref, zeros_ref, o_ref):
    del zeros_ref
    columns = jnp.arange(x_ref.shape[1])
    plgpu.atomic_add(o_ref, (columns,), jnp.sum(x_ref[...], axis=0))


# pallas-lint: probe(f32[64,32])
def column_sums_by_atomics(x):
    zeros = jnp.zeros((32,), x.dtype)
    whole = pl.BlockSpec((32,), lambda i: (0,))
    return pl.pallas_call(
        _added_by_all,
        grid=(4,),
        in_specs=[pl.BlockSpec((16, 32), lambda i: (i, 0)), whole],
        out_specs=whole,
        out_shape=like(zeros),
        input_output_aliases={1: 0},
        compiler_params=FOUR_WARPS,
    )(x, zeros)


def expected_column_sums_by_atomics(x):
    return jnp.sum(x, axis=0)


def _largest(x_ref, least_ref, o_ref):
    del least_ref
    plgpu.atomic_max(o_ref, (0,), jnp.max(x_ref[...], axis=0))


# pallas-lint: probe(i32[128])
def maximum_by_atomics(x):
    least = jnp.full((1,), -(2**31), jnp.int32)
    whole = pl.BlockSpec((1,), lambda i: (0,))
    return pl.pallas_call(
        _largest,
        grid=(4,),
        in_specs=[pl.BlockSpec((32,), lambda i: (i,)), whole],
        out_specs=whole,
        out_shape=like(least),
        input_output_aliases={1: 0},
        compiler_params=FOUR_WARPS,
    )(x, least)


def expected_maximum_by_atomics(x):
    return jnp.max(x)[None]


def _ragged_product(x_ref, y_ref, o_ref, *, rows, columns, depth, block):
    at_rows = pl.program_id(0) * block + jnp.arange(block)
    at_columns = pl.program_id(1) * block + jnp.arange(block)

    def body(step, total):
        at = step * block + jnp.arange(block)
        x_inside = (at_rows < rows)[:, None] & (at < depth)[None, :]
        y_inside = (at < depth)[:, None] & (at_columns < columns)[None, :]
        x = plgpu.load(x_ref.at[at_rows[:, None], at[None, :]], mask=x_inside, other=0.0)
        y = plgpu.load(y_ref.at[at[:, None], at_columns[None, :]], mask=y_inside, other=0.0)
        return total + jnp.dot(x, y, precision="highest", preferred_element_type=jnp.float32)

    total = lax.fori_loop(0, pl.cdiv(depth, block), body, jnp.zeros((block, block), jnp.float32))
    inside = (at_rows < rows)[:, None] & (at_columns < columns)[None, :]
    plgpu.store(o_ref.at[at_rows[:, None], at_columns[None, :]], total.astype(o_ref.dtype), mask=inside)


# pallas-lint: probe(f32[40,50], f32[50,70])
def matmul_of_any_size(x, y):
    (rows, depth), columns = x.shape, y.shape[1]
    return pl.pallas_call(
        functools.partial(_ragged_product, rows=rows, columns=columns, depth=depth, block=32),
        grid=(pl.cdiv(rows, 32), pl.cdiv(columns, 32)),
        out_shape=like(x, (rows, columns)),
        compiler_params=FOUR_WARPS,
    )(x, y)


def expected_matmul_of_any_size(x, y):
    return jnp.dot(x, y, precision="highest")


def _attention(q_ref, k_ref, v_ref, o_ref, *, block, causal):
    q = q_ref[...]
    rows = pl.program_id(0) * block + jnp.arange(block)

    def body(step, carry):
        values, most, total = carry
        here = pl.ds(step * block, block)
        scores = jnp.dot(q, k_ref[here, :].T, preferred_element_type=jnp.float32)
        if causal:
            columns = step * block + jnp.arange(block)
            scores = jnp.where(rows[:, None] >= columns[None, :], scores, -1e30)
        now = jnp.maximum(most, jnp.max(scores, axis=1))
        weights = jnp.exp(scores - now[:, None])
        fade = jnp.exp(most - now)
        values = values * fade[:, None] + jnp.dot(
            weights.astype(v_ref.dtype), v_ref[here, :], preferred_element_type=jnp.float32
        )
        return values, now, total * fade + jnp.sum(weights, axis=1)

    steps = pl.program_id(0) + 1 if causal else k_ref.shape[0] // block
    start = (jnp.zeros(q.shape, jnp.float32), jnp.full((block,), -1e30), jnp.zeros((block,)))
    values, _, total = lax.fori_loop(0, steps, body, start)
    o_ref[...] = (values / total[:, None]).astype(o_ref.dtype)


def attention(q, k, v, causal):
    one = pl.BlockSpec((32, q.shape[1]), lambda i: (i, 0))
    whole = pl.BlockSpec(k.shape, lambda i: (0, 0))
    return pl.pallas_call(
        functools.partial(_attention, block=32, causal=causal),
        grid=(q.shape[0] // 32,),
        in_specs=[one, whole, whole],
        out_specs=one,
        out_shape=like(q),
        compiler_params=FOUR_WARPS,
    )(q, k, v)


# pallas-lint: probe(f16[64,64], f16[64,64], f16[64,64])
def full_attention(q, k, v):
    return attention(q, k, v, causal=False)


def expected_full_attention(q, k, v):
    scores = jnp.dot(q, k.T, preferred_element_type=jnp.float32)
    return (jax.nn.softmax(scores, axis=1) @ v.astype(jnp.float32)).astype(q.dtype)


# pallas-lint: probe(f16[64,64], f16[64,64], f16[64,64])
def causal_attention(q, k, v):
    return attention(q, k, v, causal=True)


def expected_causal_attention(q, k, v):
    scores = jnp.dot(q, k.T, preferred_element_type=jnp.float32)
    scores = jnp.where(jnp.tril(jnp.ones((64, 64), bool)), scores, -1e30)
    return (jax.nn.softmax(scores, axis=1) @ v.astype(jnp.float32)).astype(q.dtype)


def _rotated(x_ref, cos_ref, sin_ref, o_ref, *, half):
    row = pl.program_id(0)
    first, second = x_ref[row, pl.ds(0, half)], x_ref[row, pl.ds(half, half)]
    cos, sin = cos_ref[row, pl.ds(0, half)], sin_ref[row, pl.ds(0, half)]
    o_ref[row, pl.ds(0, half)] = first * cos - second * sin
    o_ref[row, pl.ds(half, half)] = second * cos + first * sin


# pallas-lint: probe(f32[8,64], f32[8,32], f32[8,32])
def rotary_embedding(x, cos, sin):
    return pl.pallas_call(
        functools.partial(_rotated, half=32), grid=(8,), out_shape=like(x), compiler_params=FOUR_WARPS
    )(x, cos, sin)


def expected_rotary_embedding(x, cos, sin):
    first, second = jnp.split(x, 2, axis=1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=1)


def _rows_of_any_length(x_ref, o_ref, *, size, block):
    row = pl.program_id(0)

    def body(step, total):
        at = step * block + jnp.arange(block)
        return total + plgpu.load(x_ref.at[row, at], mask=at < size, other=0.0)

    total = lax.fori_loop(0, pl.cdiv(size, block), body, jnp.zeros((block,), jnp.float32))
    o_ref[row] = jnp.sum(total)


# pallas-lint: probe(f32[4,300])
def sums_of_long_rows(x):
    return pl.pallas_call(
        functools.partial(_rows_of_any_length, size=x.shape[1], block=128),
        grid=(x.shape[0],),
        out_shape=like(x, (x.shape[0],)),
        compiler_params=FOUR_WARPS,
    )(x)


def expected_sums_of_long_rows(x):
    return jnp.sum(x, axis=1)


def _scaled(x_ref, scale_ref, o_ref):
    o_ref[...] = x_ref[...] * scale_ref[0]


# pallas-lint: probe(f32[3,128], f32[1])
def batched(x, scale):
    block = pl.BlockSpec((32,), lambda i: (i,))

    def one(x):
        return pl.pallas_call(
            _scaled,
            grid=(4,),
            in_specs=[block, pl.BlockSpec((1,), lambda i: (0,))],
            out_specs=block,
            out_shape=like(x),
            compiler_params=FOUR_WARPS,
        )(x, scale)

    return jax.vmap(one)(x)


def expected_batched(x, scale):
    return x * scale


@jax.custom_vjp
def _cube(x):
    return _launch(_cubed, x)


def _cubed(x_ref, o_ref):
    o_ref[...] = x_ref[...] * x_ref[...] * x_ref[...]


def _cubed_gradient(x_ref, g_ref, o_ref):
    o_ref[...] = 3 * x_ref[...] * x_ref[...] * g_ref[...]


def _launch(kernel, *operands):
    block = pl.BlockSpec((64,), lambda i: (i,))
    return pl.pallas_call(
        kernel,
        grid=(operands[0].shape[0] // 64,),
        in_specs=[block] * len(operands),
        out_specs=block,
        out_shape=like(operands[0]),
        compiler_params=FOUR_WARPS,
    )(*operands)


_cube.defvjp(lambda x: (_cube(x), x), lambda x, g: (_launch(_cubed_gradient, x, g),))


# pallas-lint: probe(f32[128])
def gradient(x):
    return jax.grad(lambda x: jnp.sum(_cube(x)))(x)


def expected_gradient(x):
    return 3 * x * x


def _two_results(x_ref, most_ref, at_ref):
    x = x_ref[...]
    most_ref[...] = jnp.max(x, axis=1)
    at_ref[...] = jnp.argmax(x, axis=1).astype(jnp.int32)


# pallas-lint: probe(f32[32,64])
def maximum_and_its_place(x):
    rows = pl.BlockSpec((8,), lambda i: (i,))
    return pl.pallas_call(
        _two_results,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 64), lambda i: (i, 0))],
        out_specs=[rows, rows],
        out_shape=[like(x, (32,)), like(x, (32,), jnp.int32)],
        compiler_params=FOUR_WARPS,
    )(x)


def expected_maximum_and_its_place(x):
    return [jnp.max(x, axis=1), jnp.argmax(x, axis=1).astype(jnp.int32)]


def _in_place(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


# pallas-lint: probe(f32[128])
def in_place(x):
    block = pl.BlockSpec((64,), lambda i: (i,))
    return pl.pallas_call(
        _in_place,
        grid=(2,),
        in_specs=[block],
        out_specs=block,
        out_shape=like(x),
        input_output_aliases={0: 0},
        compiler_params=FOUR_WARPS,
    )(x)


def expected_in_place(x):
    return x + 1


def _steps_to_one(x_ref, o_ref):
    def larger(carry):
        value, _ = carry
        return value > 1

    def next_one(carry):
        value, steps = carry
        return jnp.where(value % 2 == 0, value // 2, 3 * value + 1), steps + 1

    o_ref[...] = lax.while_loop(larger, next_one, (x_ref[...], 0))[1]


# pallas-lint: probe(i32[8]=[1,2,3,4,5,6,7,8])
def while_loop_of_scalars(x):
    one = pl.BlockSpec((None,), lambda i: (i,))
    return pl.pallas_call(
        _steps_to_one,
        grid=(x.shape[0],),
        in_specs=[one],
        out_specs=one,
        out_shape=like(x),
        compiler_params=FOUR_WARPS,
    )(x)


def expected_while_loop_of_scalars(x):
    return jnp.array([0, 1, 7, 2, 5, 8, 16, 3], jnp.int32)


def _by_chunks(x_ref, offsets_ref, o_ref):
    chunk, offsets = pl.program_id(0), offsets_ref[...]
    rows = chunk * offsets.size + offsets
    o_ref[chunk, offsets[:, None], offsets[None, :]] = x_ref[rows[:, None], offsets[None, :]] * 2


# pallas-lint: probe(f32[64,16])
def rows_in_chunks(x):
    out_shape = like(x, (4, 16, 16))
    return pl.pallas_call(_by_chunks, grid=(4,), out_shape=out_shape, compiler_params=FOUR_WARPS)(x, jnp.arange(16))


def expected_rows_in_chunks(x):
    return x.reshape(4, 16, 16) * 2
