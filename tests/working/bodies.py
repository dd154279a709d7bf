"""Working kernels with loops, conditions and blocks of every kind, for every jax from 0.4.35 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _running_sum(x_ref, o_ref):
    def body(i, total):
        total = total + x_ref[pl.ds(i, 1), :]
        o_ref[pl.ds(i, 1), :] = total
        return total

    lax.fori_loop(0, x_ref.shape[0], body, jnp.zeros((1, 128), jnp.float32))


# pallas-lint: probe(f32[16,128])
def running_sum(x):
    return pl.pallas_call(_running_sum, out_shape=like(x))(x)


def expected_running_sum(x):
    return jnp.cumsum(x, axis=0)


def _halved(x_ref, o_ref):
    def larger(carry):
        x, steps = carry
        return (jnp.max(jnp.abs(x)) > 0.01) & (steps < 40)

    def half(carry):
        x, steps = carry
        return x * 0.5, steps + 1

    o_ref[...] = lax.while_loop(larger, half, (x_ref[...], 0))[0]


# pallas-lint: probe(f32[8,128])
def while_loop_over_a_block(x):
    return pl.pallas_call(_halved, out_shape=like(x))(x)


def expected_while_loop_over_a_block(x):
    steps = jnp.ceil(jnp.log2(jnp.max(jnp.abs(x)) / 0.01))
    return x * 0.5 ** jnp.maximum(steps, 0)


def _by_parity(x_ref, o_ref):
    even = lax.rem(pl.program_id(0), 2) == 0
    o_ref[...] = lax.cond(even, lambda x: x + 1, lambda x: x - 1, x_ref[...])


# pallas-lint: probe(f32[32,128])
def condition_on_the_step(x):
    return pl.pallas_call(_by_parity, grid=(4,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x))(x)


def expected_condition_on_the_step(x):
    return (x.reshape(4, 8, 128) + jnp.array([1.0, -1.0, 1.0, -1.0])[:, None, None]).reshape(32, 128)


def _tiles(x_ref, o_ref, *, tile):
    def body(i, _):
        here = pl.ds(pl.multiple_of(i * tile, tile), tile)
        o_ref[here, :] = x_ref[here, :] * 2

    lax.fori_loop(0, x_ref.shape[0] // tile, body, None)


# pallas-lint: probe(f32[64,128])
def tiles_of_a_block(x):
    return pl.pallas_call(functools.partial(_tiles, tile=8), out_shape=like(x))(x)


def expected_tiles_of_a_block(x):
    return x * 2


def _unrolled(x_ref, o_ref):
    total = x_ref[0]
    for row in range(1, x_ref.shape[0]):
        total = jnp.maximum(total, x_ref[row])
    o_ref[...] = total


# pallas-lint: probe(f32[4,8,128])
def unrolled_maximum(x):
    return pl.pallas_call(_unrolled, out_shape=like(x, (8, 128)))(x)


def expected_unrolled_maximum(x):
    return jnp.max(x, axis=0)


def _extremes(x_ref, least_ref, most_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        least_ref[...] = jnp.full(least_ref.shape, jnp.inf, least_ref.dtype)
        most_ref[...] = jnp.full(most_ref.shape, -jnp.inf, most_ref.dtype)

    least_ref[...] = jnp.minimum(least_ref[...], jnp.min(x_ref[...], axis=0, keepdims=True))
    most_ref[...] = jnp.maximum(most_ref[...], jnp.max(x_ref[...], axis=0, keepdims=True))


# pallas-lint: probe(f32[32,128])
def two_revisited_outputs(x):
    row = pl.BlockSpec((1, 128), lambda i: (0, 0))
    return pl.pallas_call(
        _extremes, grid=(4,), in_specs=[ROWS], out_specs=(row, row), out_shape=(like(x, (1, 128)), like(x, (1, 128)))
    )(x)


def expected_two_revisited_outputs(x):
    return jnp.min(x, axis=0, keepdims=True), jnp.max(x, axis=0, keepdims=True)


def _first_and_rest(x_ref, o_ref):
    i = pl.program_id(1)

    @pl.when(i == 0)
    def first():
        o_ref[...] = x_ref[...]

    @pl.when(i > 0)
    def rest():
        o_ref[...] = o_ref[...] + x_ref[...]


# pallas-lint: probe(f32[2,4,8,128])
def first_step_stores_and_others_add(x):
    return pl.pallas_call(
        _first_and_rest,
        grid=(2, 4),
        in_specs=[pl.BlockSpec((None, None, 8, 128), lambda i, j: (i, j, 0, 0))],
        out_specs=pl.BlockSpec((None, 8, 128), lambda i, j: (i, 0, 0)),
        out_shape=like(x, (2, 8, 128)),
    )(x)


def expected_first_step_stores_and_others_add(x):
    return jnp.sum(x, axis=1)


def _best(x_ref, o_ref, *, count):
    x = x_ref[...]
    # As floats: TPU finds the least of integers from jax 0.7 on only.
    columns = lax.broadcasted_iota(jnp.int32, x.shape, 1).astype(x.dtype)
    for k in range(count):
        most = jnp.max(x, axis=1, keepdims=True)
        o_ref[:, k : k + 1] = most
        first = jnp.min(jnp.where(x == most, columns, float(x.shape[1])), axis=1, keepdims=True)
        x = jnp.where(columns == first, -jnp.inf, x)


# pallas-lint: probe(f32[8,128])
def largest_of_each_row(x):
    return pl.pallas_call(functools.partial(_best, count=4), out_shape=like(x, (8, 4)))(x)


def expected_largest_of_each_row(x):
    return lax.top_k(x, 4)[0]


def _scaled(x_ref, scale_ref, o_ref):
    o_ref[...] = x_ref[...] * scale_ref[...]


# pallas-lint: probe(f32[3,16,128], f32[1,128])
def batched_operand_beside_a_shared_one(x, scale):
    def one(x, scale):
        row = pl.BlockSpec((1, 128), lambda i: (0, 0))
        return pl.pallas_call(_scaled, grid=(2,), in_specs=[ROWS, row], out_specs=ROWS, out_shape=like(x))(x, scale)

    return jax.vmap(one, in_axes=(0, None))(x, scale)


def expected_batched_operand_beside_a_shared_one(x, scale):
    return x * scale


# pallas-lint: probe(f32[2,3,16,128], f32[2,1,128])
def batched_twice(x, scale):
    row = pl.BlockSpec((1, 128), lambda i: (0, 0))

    def one(x, scale):
        return pl.pallas_call(_scaled, grid=(2,), in_specs=[ROWS, row], out_specs=ROWS, out_shape=like(x))(x, scale)

    return jax.vmap(jax.vmap(one, in_axes=(0, None)))(x, scale)


def expected_batched_twice(x, scale):
    return x * scale[:, None]


def _reversed(x_ref, o_ref):
    o_ref[...] = x_ref[...]


# pallas-lint: probe(f32[32,128])
def blocks_from_the_last(x):
    steps = x.shape[0] // 8
    from_the_last = pl.BlockSpec((8, 128), lambda i: (steps - 1 - i, 0))
    return pl.pallas_call(_reversed, grid=(steps,), in_specs=[from_the_last], out_specs=ROWS, out_shape=like(x))(x)


def expected_blocks_from_the_last(x):
    return x.reshape(4, 8, 128)[::-1].reshape(32, 128)


# pallas-lint: probe(f32[8,128])
def blocks_again_and_again(x):
    again = pl.BlockSpec((8, 128), lambda i: (0, 0))
    return pl.pallas_call(_reversed, grid=(4,), in_specs=[again], out_specs=ROWS, out_shape=like(x, (32, 128)))(x)


def expected_blocks_again_and_again(x):
    return jnp.tile(x, (4, 1))


def _masked(x_ref, seen_ref, o_ref):
    o_ref[...] = jnp.where(seen_ref[...] != 0, x_ref[...], 0.0)


# pallas-lint: probe(f32[16,128], i32[16,128])
def mask_of_integers(x, seen):
    return pl.pallas_call(_masked, grid=(2,), in_specs=[ROWS, ROWS], out_specs=ROWS, out_shape=like(x))(x, seen)


def expected_mask_of_integers(x, seen):
    return jnp.where(seen != 0, x, 0.0)


def _upper(o_ref):
    rows = lax.broadcasted_iota(jnp.int32, o_ref.shape, 0)
    columns = lax.broadcasted_iota(jnp.int32, o_ref.shape, 1)
    o_ref[...] = (columns >= rows).astype(o_ref.dtype)


# pallas-lint: probe()
def no_operands():
    return pl.pallas_call(_upper, out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32))()


def expected_no_operands():
    return jnp.triu(jnp.ones((16, 128)))


def _passed_on(x_ref, *refs):
    *others, o_ref = refs
    total = x_ref[...]
    for other in others:
        total += other[...]
    o_ref[...] = total


# pallas-lint: probe([f32[16,128], f32[16,128], f32[16,128]])
def as_many_operands_as_there_are(xs):
    return pl.pallas_call(_passed_on, grid=(2,), in_specs=[ROWS] * len(xs), out_specs=ROWS, out_shape=like(xs[0]))(*xs)


def expected_as_many_operands_as_there_are(xs):
    return sum(xs)


class Scaler:
    """A kernel that is a method, with what it needs on the instance."""

    def __init__(self, factor, rows):
        self.factor = factor
        self.rows = rows

    def kernel(self, x_ref, o_ref):
        o_ref[...] = x_ref[...] * self.factor

    def __call__(self, x):
        block = pl.BlockSpec((self.rows, 128), lambda i: (i, 0))
        grid = (x.shape[0] // self.rows,)
        return pl.pallas_call(self.kernel, grid=grid, in_specs=[block], out_specs=block, out_shape=like(x))(x)


# pallas-lint: probe(f32[32,128])
def kernel_that_is_a_method(x):
    return Scaler(3.0, 16)(x)


def expected_kernel_that_is_a_method(x):
    return x * 3


def _made(operation, negate):
    def kernel(x_ref, y_ref, o_ref):
        value = operation(x_ref[...], y_ref[...])
        if negate:
            value = -value
        o_ref[...] = value

    return kernel


# pallas-lint: probe(f32[16,128], f32[16,128])
def kernels_from_a_factory(x, y):
    def launch(kernel):
        return pl.pallas_call(kernel, grid=(2,), in_specs=[ROWS, ROWS], out_specs=ROWS, out_shape=like(x))(x, y)

    return launch(_made(jnp.add, negate=True)), launch(_made(jnp.maximum, negate=False))


def expected_kernels_from_a_factory(x, y):
    return -(x + y), jnp.maximum(x, y)


def _difference(x_ref, before_ref, o_ref):
    first = pl.program_id(0) == 0
    before = jnp.where(first, 0.0, before_ref[7:8, :])
    o_ref[0:1, :] = x_ref[0:1, :] - before
    o_ref[1:8, :] = x_ref[1:8, :] - x_ref[0:7, :]


# pallas-lint: probe(f32[32,128])
def neighbouring_blocks(x):
    before = pl.BlockSpec((8, 128), lambda i: (jnp.maximum(i - 1, 0), 0))
    return pl.pallas_call(_difference, grid=(4,), in_specs=[ROWS, before], out_specs=ROWS, out_shape=like(x))(x, x)


def expected_neighbouring_blocks(x):
    return jnp.diff(x, axis=0, prepend=jnp.zeros((1, 128)))


def _bits(x_ref, o_ref):
    x = x_ref[...]
    x = (x ^ (x >> 16)) * 0x45D9F3B
    o_ref[...] = x & 0xFFFF


# pallas-lint: probe(u32[16,128])
def bits_of_integers(x):
    return pl.pallas_call(_bits, grid=(2,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x))(x)


def expected_bits_of_integers(x):
    return ((x ^ (x >> 16)) * jnp.uint32(0x45D9F3B)) & jnp.uint32(0xFFFF)
