"""Working TPU kernels whose grids and blocks depend on data, or are of special kinds. For jax from 0.8.3 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
SEQUENTIAL = pltpu.CompilerParams(dimension_semantics=("arbitrary",))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _paged(pages_ref, lengths_ref, q_ref, k_ref, v_ref, o_ref, most, total, values, *, page):
    sequence, at = pl.program_id(0), pl.program_id(1)

    @pl.when(at == 0)
    def _():
        most[...] = jnp.full_like(most, -1e30)
        total[...] = jnp.zeros_like(total)
        values[...] = jnp.zeros_like(values)

    @pl.when(at * page < lengths_ref[sequence])
    def _():
        scores = lax.dot_general(q_ref[...], k_ref[...], (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
        columns = at * page + lax.broadcasted_iota(jnp.int32, scores.shape, 1)
        scores = jnp.where(columns < lengths_ref[sequence], scores, -1e30)
        now = jnp.maximum(most[...], jnp.max(scores, axis=1, keepdims=True))
        weights = jnp.exp(scores - now[:, :1])
        fade = jnp.exp(most[...] - now)
        total[...] = total[...] * fade + jnp.sum(weights, axis=1, keepdims=True)
        values[...] = values[...] * fade + jnp.dot(weights, v_ref[...], preferred_element_type=jnp.float32)
        most[...] = now

    @pl.when(at == pl.num_programs(1) - 1)
    def _():
        o_ref[...] = values[...] / total[...]


# pallas-lint: probe(i32[4]=[3,1,0,2], i32[2]=[100,200], f32[2,8,128], f32[4,128,128], f32[4,128,128])
def paged_attention(pages, lengths, q, k, v):
    head = pl.BlockSpec((None, 8, 128), lambda i, j, pages, lengths: (i, 0, 0))
    page = pl.BlockSpec((None, 128, 128), lambda i, j, pages, lengths: (pages[i * 2 + j], 0, 0))
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(2, 2),
        in_specs=[head, page, page],
        out_specs=head,
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)] * 3,
    )
    return pl.pallas_call(
        functools.partial(_paged, page=128),
        grid_spec=spec,
        out_shape=like(q),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(pages, lengths, q, k, v)


def expected_paged_attention(pages, lengths, q, k, v):
    keys, values = (each[pages].reshape(2, 256, 128) for each in (k, v))
    scores = jnp.where(jnp.arange(256) < lengths[:, None, None], jnp.einsum("bqd,bkd->bqk", q, keys), -1e30)
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, axis=-1), values)


def _grouped(groups_ref, x_ref, w_ref, o_ref):
    del groups_ref
    o_ref[...] = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)


# pallas-lint: probe(i32[4]=[0,0,1,2], f32[32,128], f32[3,128,256])
def grouped_matmul(groups, x, w):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4, 2),
        in_specs=[
            pl.BlockSpec((8, 128), lambda i, j, groups: (i, 0)),
            pl.BlockSpec((None, 128, 128), lambda i, j, groups: (groups[i], 0, j)),
        ],
        out_specs=pl.BlockSpec((8, 128), lambda i, j, groups: (i, j)),
    )
    return pl.pallas_call(_grouped, grid_spec=spec, out_shape=like(x, (32, 256)))(groups, x, w)


def expected_grouped_matmul(groups, x, w):
    return jnp.einsum("bik,bkn->bin", x.reshape(4, 8, 128), w[groups]).reshape(32, 256)


def _ragged(ends_ref, tiles_ref, groups_ref, x_ref, w_ref, o_ref):
    step = pl.program_id(0)
    group = groups_ref[step]
    rows = tiles_ref[step] * 8 + lax.broadcasted_iota(jnp.int32, o_ref.shape, 0)
    mine = (rows >= ends_ref[group]) & (rows < ends_ref[group + 1])
    product = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32)
    first = (step == 0) | (tiles_ref[jnp.maximum(step - 1, 0)] != tiles_ref[step])

    @pl.when(first)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] = jnp.where(mine, product, o_ref[...])


# pallas-lint: probe(i32[4]=[0,5,12,16], i32[4]=[0,0,1,1], i32[4]=[0,1,1,2], f32[16,128], f32[3,128,128])
def ragged_matmul(ends, tiles, groups, x, w):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=3,
        grid=(4,),
        in_specs=[
            pl.BlockSpec((8, 128), lambda s, ends, tiles, groups: (tiles[s], 0)),
            pl.BlockSpec((None, 128, 128), lambda s, ends, tiles, groups: (groups[s], 0, 0)),
        ],
        out_specs=pl.BlockSpec((8, 128), lambda s, ends, tiles, groups: (tiles[s], 0)),
    )
    return pl.pallas_call(_ragged, grid_spec=spec, out_shape=like(x), compiler_params=SEQUENTIAL)(
        ends, tiles, groups, x, w
    )


def expected_ragged_matmul(ends, tiles, groups, x, w):
    group = jnp.searchsorted(ends, jnp.arange(16), side="right") - 1
    return jnp.einsum("ik,ikn->in", x, w[group])


def _kept(index_ref, kept_ref, x_ref, y_ref, o_ref):
    step = pl.program_id(1)

    @pl.when(step == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    @pl.when(kept_ref[pl.program_id(0) * pl.num_programs(1) + step] != 0)
    def _():
        o_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


# pallas-lint: probe(i32[4]=[1,1,0,1], i32[4]=[1,0,1,1], f32[256,256], f32[256,128])
def block_sparse_matmul(index, kept, x, y):
    def column(i, s, index, kept):
        return index[i * 2 + s]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(2, 2),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i, s, *refs: (i, column(i, s, *refs))),
            pl.BlockSpec((128, 128), lambda i, s, *refs: (column(i, s, *refs), 0)),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i, s, *_: (i, 0)),
    )
    return pl.pallas_call(_kept, grid_spec=spec, out_shape=like(x, (256, 128)))(index, kept, x, y)


def expected_block_sparse_matmul(index, kept, x, y):
    first = x[:128, 128:] @ y[128:]
    return jnp.concatenate([first, x[128:] @ y])


def _double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def _offset(offset_ref, x_ref, o_ref):
    del offset_ref
    o_ref[...] = x_ref[...] * 2


# pallas-lint: probe(i32[1]=[8], f32[64,128])
def window_at_an_element(offset, x):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[
            pl.BlockSpec((pl.Element(16), pl.Element(128)), lambda i, at: (pl.multiple_of(at[0] + i * 16, 8), 0))
        ],
        out_specs=pl.BlockSpec((16, 128), lambda i, offset: (i, 0)),
    )
    return pl.pallas_call(_offset, grid_spec=spec, out_shape=like(x, (32, 128)))(offset, x)


def expected_window_at_an_element(offset, x):
    return x[8:40] * 2


# pallas-lint: probe(f32[4,16,128])
def squeezed_by_name(x):
    one = pl.BlockSpec((pl.Squeezed(), pl.Blocked(16), pl.Blocked(128)), lambda i: (i, 0, 0))
    return pl.pallas_call(
        _double, grid=(4,), in_specs=[one], out_specs=one, out_shape=like(x), compiler_params=SEQUENTIAL
    )(x)


def expected_squeezed_by_name(x):
    return x * 2


def _in_pieces(ends_ref, x_ref, o_ref):
    def step(x_ref, o_ref):
        o_ref[...] = x_ref[...] * 2

    def piece(i):
        start, end = ends_ref[i], ends_ref[i + 1]
        return (pl.ds(pl.multiple_of(start, 8), pl.multiple_of(end - start, 8)), 0)

    rows = pl.BlockSpec((pl.BoundedSlice(32), 128), piece)
    pltpu.emit_pipeline(step, grid=(ends_ref.shape[0] - 1,), in_specs=[rows], out_specs=[rows])(x_ref, o_ref)


# pallas-lint: probe(i32[4]=[0,16,24,56], f32[56,128])
def pieces_of_bounded_length(ends, x):
    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        _in_pieces,
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), anywhere],
        out_specs=anywhere,
        out_shape=like(x),
    )(ends, x)


def expected_pieces_of_bounded_length(ends, x):
    return x * 2


# pallas-lint: probe(i32[]=4, f32[32,128])
def steps_from_an_argument(steps, x):
    return pl.pallas_call(
        _double, grid=(steps,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x), compiler_params=SEQUENTIAL
    )(x)


def expected_steps_from_an_argument(steps, x):
    return x * 2


# pallas-lint: probe(f32[3,32,128])
def batched_with_scratch(x):
    def kernel(x_ref, o_ref, total):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[...] = jnp.zeros_like(total)

        total[...] += x_ref[...]

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _():
            o_ref[...] = total[...]

    launched = pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        out_shape=like(x, (8, 128)),
        scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
    )
    return jax.vmap(launched)(x)


def expected_batched_with_scratch(x):
    return jnp.sum(x.reshape(3, 4, 8, 128), axis=1)


def _carried(x_ref, o_ref, last):
    @pl.when(pl.program_id(0) == 0)
    def _():
        last[0] = 0.0

    o_ref[...] = x_ref[...] + last[0]
    last[0] = last[0] + 1.0


# pallas-lint: probe(f32[32,128])
def scalar_carried_through_the_grid(x):
    return pl.pallas_call(
        _carried,
        grid=(4,),
        in_specs=[ROWS],
        out_specs=ROWS,
        out_shape=like(x),
        scratch_shapes=[pltpu.SMEM((1,), jnp.float32)],
        compiler_params=SEQUENTIAL,
    )(x)


def expected_scalar_carried_through_the_grid(x):
    return (x.reshape(4, 8, 128) + jnp.arange(4.0)[:, None, None]).reshape(32, 128)


def _ragged_columns(x_ref, o_ref, total, *, columns):
    step = pl.program_id(1)

    @pl.when(step == 0)
    def _():
        total[...] = jnp.zeros_like(total)

    at = step * 128 + lax.broadcasted_iota(jnp.int32, x_ref.shape, 1)
    total[...] += jnp.sum(jnp.where(at < columns, x_ref[...], 0.0), axis=1, keepdims=True)

    @pl.when(step == pl.num_programs(1) - 1)
    def _():
        o_ref[...] = total[...]


# pallas-lint: probe(f32[20,200])
def sums_of_ragged_rows(x):
    return pl.pallas_call(
        functools.partial(_ragged_columns, columns=x.shape[1]),
        grid=(pl.cdiv(x.shape[0], 8), pl.cdiv(x.shape[1], 128)),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 1), lambda i, j: (i, 0)),
        out_shape=like(x, (20, 1)),
        scratch_shapes=[pltpu.VMEM((8, 1), jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )(x)


def expected_sums_of_ragged_rows(x):
    return jnp.sum(x, axis=1, keepdims=True)
