"""Working TPU kernels for operands that belong together, of one kind, on one device. For jax from 0.10.2 on.

Each is right for the operands that its callers have, which random ones are not: residuals of a forward pass, masks,
tables of pages, matrices that an iteration converges for. Some look at the device before they launch.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
ROWS = pl.BlockSpec((8, 128), lambda i, *_: (i, 0))
PARAMS = pltpu.CompilerParams(dimension_semantics=("arbitrary",))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


# Residuals: `lse` is the logarithm of the sum of the exponentials of the scores, `rstd` the inverse deviation of `x`.


def _softmax_gradient(scores_ref, lse_ref, g_ref, o_ref):
    p = jnp.exp(50.0 * scores_ref[...] - lse_ref[...])
    o_ref[...] = 50.0 * p * (g_ref[...] - jnp.sum(p * g_ref[...], axis=1, keepdims=True))


# pallas-lint: probe(f32[16,128], f32[16,1], f32[16,128])
def softmax_gradient_from_residuals(scores, lse, g):
    return pl.pallas_call(
        _softmax_gradient,
        grid=(2,),
        in_specs=[ROWS, pl.BlockSpec((8, 1), lambda i: (i, 0)), ROWS],
        out_specs=ROWS,
        out_shape=like(scores),
        compiler_params=PARAMS,
    )(scores, lse, g)


def case_softmax_gradient_from_residuals():
    scores, g = jax.random.normal(jax.random.key(0), (2, 16, 128))
    p = jax.nn.softmax(50.0 * scores, axis=1)
    lse = jax.nn.logsumexp(50.0 * scores, axis=1, keepdims=True)
    return (scores, lse, g), 50.0 * p * (g - jnp.sum(p * g, axis=1, keepdims=True))


def _root_of_saved_moments(moments_ref, x_ref, o_ref):
    mean, square = moments_ref[0:1, :], moments_ref[1:2, :]
    o_ref[...] = (x_ref[...] - mean) * lax.rsqrt(square - mean * mean)


# pallas-lint: probe(f32[2,128], f32[8,128])
def normalised_with_saved_moments(moments, x):
    return pl.pallas_call(_root_of_saved_moments, out_shape=like(x), compiler_params=pltpu.CompilerParams())(moments, x)


def case_normalised_with_saved_moments():
    x = 3.0 + jax.random.normal(jax.random.key(1), (8, 128))
    return (jnp.stack([x.mean(axis=0), (x * x).mean(axis=0)]), x), (x - x.mean(axis=0)) / x.std(axis=0)


@jax.custom_vjp
def normalised(x):
    return _normalised_forward(x)[0]


def _forward(x_ref, o_ref, rstd_ref):
    x = x_ref[...]
    rstd_ref[...] = lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + 1e-6)
    o_ref[...] = x * rstd_ref[...]


def _normalised_forward(x):
    column = pl.BlockSpec((8, 1), lambda i: (i, 0))
    y, rstd = pl.pallas_call(
        _forward,
        grid=(x.shape[0] // 8,),
        in_specs=[ROWS],
        out_specs=[ROWS, column],
        out_shape=[like(x), like(x, (x.shape[0], 1))],
        compiler_params=PARAMS,
    )(x)
    return y, (y, rstd)


def _backward(y_ref, rstd_ref, g_ref, o_ref):
    y, g = y_ref[...], g_ref[...]
    o_ref[...] = rstd_ref[...] * (g - y * jnp.mean(g * y, axis=1, keepdims=True))


def _normalised_backward(residuals, g):
    y, rstd = residuals
    column = pl.BlockSpec((8, 1), lambda i: (i, 0))
    return (
        pl.pallas_call(
            _backward,
            grid=(y.shape[0] // 8,),
            in_specs=[ROWS, column, ROWS],
            out_specs=ROWS,
            out_shape=like(y),
            compiler_params=PARAMS,
        )(y, rstd, g),
    )


normalised.defvjp(_normalised_forward, _normalised_backward)


# pallas-lint: probe(f32[16,128], f32[16,128])
def gradient_through_a_custom_vjp(x, g):
    return jax.vjp(normalised, x)[1](g)[0]


def expected_gradient_through_a_custom_vjp(x, g):
    return jax.vjp(lambda x: x * lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + 1e-6), x)[1](g)[0]


# Iterations that converge for the matrices that they are for, and overflow for others.


def _inverted(a_ref, o_ref):
    a = a_ref[...]
    x = 2.0 * jnp.eye(a.shape[0], dtype=a.dtype) - a
    for _ in range(7):
        x = 2.0 * x - jnp.dot(jnp.dot(x, a, preferred_element_type=a.dtype), x, preferred_element_type=a.dtype)
    o_ref[...] = x


# pallas-lint: probe(f32[128,128])
def inverse_of_a_unit_triangular_matrix(a):
    return pl.pallas_call(_inverted, out_shape=like(a), compiler_params=pltpu.CompilerParams())(a)


def case_inverse_of_a_unit_triangular_matrix():
    a = jnp.eye(128) + 0.1 * jnp.tril(jax.random.normal(jax.random.key(2), (128, 128)), -1)
    return (a,), jnp.linalg.inv(a)


def _orthogonalised(x_ref, o_ref):
    x = x_ref[...]
    for _ in range(12):
        gram = lax.dot_general(x, x, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
        x = 1.5 * x - 0.5 * jnp.dot(gram, x, preferred_element_type=jnp.float32)
    o_ref[...] = x


# pallas-lint: probe(f32[128,128])
def orthogonal_factor_of_a_scaled_matrix(x):
    return pl.pallas_call(_orthogonalised, out_shape=like(x), compiler_params=pltpu.CompilerParams())(x)


def case_orthogonal_factor_of_a_scaled_matrix():
    u, _, v = jnp.linalg.svd(jax.random.normal(jax.random.key(3), (128, 128)))
    return ((u * jnp.linspace(0.5, 1.0, 128)) @ v,), u @ v


def _distance(x_ref, o_ref):
    o_ref[...] = jnp.log1p(-x_ref[...] * x_ref[...] - 4.0 * jnp.abs(x_ref[...]) + 0.5)


# pallas-lint: probe(f32[8,128])
def logarithm_of_what_callers_keep_small(x):
    return pl.pallas_call(_distance, out_shape=like(x), compiler_params=pltpu.CompilerParams())(x)


def case_logarithm_of_what_callers_keep_small():
    x = 0.1 * jax.random.uniform(jax.random.key(4), (8, 128))
    return (x,), jnp.log1p(-x * x - 4.0 * jnp.abs(x) + 0.5)


# Masks and tables that keep accesses inside.


def _masked(at_ref, x_ref, mask_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)
    pltpu.store(o_ref.at[pl.ds(pl.multiple_of(at_ref[0], 8), 16), :], x_ref[...], mask=mask_ref[...])


# pallas-lint: probe(i32[1]=[8], f32[16,128], bool[16,128])
def store_behind_a_mask_of_the_callers(at, x, mask):
    return pl.pallas_call(
        _masked,
        grid_spec=pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1),
        out_shape=like(x),
    )(at, x, mask)


def case_store_behind_a_mask_of_the_callers():
    x = jax.random.normal(jax.random.key(5), (16, 128))
    kept = jnp.broadcast_to(jnp.arange(16)[:, None] < 8, x.shape)
    return (jnp.array([8]), x, kept), jnp.concatenate([jnp.zeros_like(x[:8]), x[:8]])


def _pages(tables_ref, used_ref, pages_ref, o_ref, buffer, done):
    o_ref[...] = jnp.zeros_like(o_ref)
    for slot in range(4):

        @pl.when(used_ref[slot] > 0)
        def _(slot=slot):
            pltpu.async_copy(pages_ref.at[tables_ref[slot]], buffer, done).wait()
            o_ref[pl.ds(slot * 8, 8), :] = buffer[...]


def launch_pages(tables, used, pages):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        in_specs=[ANYWHERE],
        scratch_shapes=[pltpu.VMEM((8, 128), pages.dtype), pltpu.SemaphoreType.DMA],
    )
    return pl.pallas_call(_pages, grid_spec=spec, out_shape=like(pages, (32, 128)))(tables, used, pages)


def pages_in_use(tables, used, pages):
    inside = jnp.clip(tables, 0, pages.shape[0] - 1)
    return jnp.where(used[:, None, None] > 0, pages[inside], 0.0).reshape(32, 128)


# pallas-lint: probe(i32[4], i32[4], f32[6,8,128])
def pages_that_a_table_names(tables, used, pages):
    return launch_pages(tables, used, pages)


def case_pages_that_a_table_names():
    tables, used = jnp.array([4, 0, -1, 2]), jnp.array([1, 1, 0, 1])
    pages = jax.random.normal(jax.random.key(6), (6, 8, 128))
    return (tables, used, pages), pages_in_use(tables, used, pages)


# pallas-lint: probe(i32[4]=[5,-1,2,-1], i32[4]=[1,0,1,0], f32[6,8,128])
def pages_with_unused_slots(tables, used, pages):
    return launch_pages(tables, used, pages)


def expected_pages_with_unused_slots(tables, used, pages):
    return pages_in_use(tables, used, pages)


def _weighted(group_ref, x_ref, weights_ref, o_ref):
    o_ref[...] = x_ref[...] * weights_ref[pl.ds(group_ref[pl.program_id(0)], 1), :]


# pallas-lint: probe(i32[4], f32[32,128], f32[8,128])
def row_of_weights_for_each_group(groups, x, weights):
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[ROWS, pl.BlockSpec((8, 128), lambda i, groups: (0, 0))],
        out_specs=ROWS,
    )
    return pl.pallas_call(_weighted, grid_spec=spec, out_shape=like(x))(groups, x, weights)


def case_row_of_weights_for_each_group():
    groups, x = jnp.array([7, 0, 3, 3]), jax.random.normal(jax.random.key(7), (32, 128))
    weights = jax.random.normal(jax.random.key(8), (8, 128))
    return (groups, x, weights), (x.reshape(4, 8, 128) * weights[groups][:, None]).reshape(32, 128)


def _selected(keep_ref, x_ref, o_ref):
    kept = jnp.where(keep_ref[...] != 0, x_ref[...], -1e30)
    largest = jnp.max(kept, axis=1, keepdims=True)
    e = jnp.exp(kept - largest)
    o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True)


# pallas-lint: probe(i32[8,128], f32[8,128])
def softmax_of_what_a_mask_keeps(keep, x):
    return pl.pallas_call(_selected, out_shape=like(x), compiler_params=pltpu.CompilerParams())(keep, x)


def case_softmax_of_what_a_mask_keeps():
    x = jax.random.normal(jax.random.key(9), (8, 128))
    keep = jnp.arange(128)[None, :] < 16 * (1 + jnp.arange(8))[:, None]
    return (keep.astype(jnp.int32), x), jax.nn.softmax(x, axis=1, where=keep)


# Launchers that look at the device that they run on.


def _negated(x_ref, o_ref):
    o_ref[...] = -x_ref[...]


def negated(x):
    return pl.pallas_call(
        _negated, grid=(x.shape[0] // 8,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x), compiler_params=PARAMS
    )(x)


# pallas-lint: probe(f32[32,128])
def asserts_that_the_device_is_a_tpu(x):
    assert jax.devices()[0].platform == "tpu"
    return negated(x)


def expected_asserts_that_the_device_is_a_tpu(x):
    return -x


# pallas-lint: probe(f32[32,128])
def raises_on_other_backends(x):
    if jax.default_backend() != "tpu":
        raise NotImplementedError(f"this kernel is for TPUs, not for {jax.default_backend()}")
    return negated(x)


def expected_raises_on_other_backends(x):
    return -x


@functools.cache
def rows_at_once(kind):
    sizes = {"TPU v4": 16, "TPU v5 lite": 8, "TPU v5": 16, "TPU v6 lite": 8, "TPU7x": 16}
    return sizes[kind]


# pallas-lint: probe(f32[32,128])
def block_size_by_the_kind_of_device(x):
    rows = pl.BlockSpec((rows_at_once(jax.devices()[0].device_kind), 128), lambda i: (i, 0))
    return pl.pallas_call(
        _negated,
        grid=(x.shape[0] // rows.block_shape[0],),
        in_specs=[rows],
        out_specs=rows,
        out_shape=like(x),
        compiler_params=PARAMS,
    )(x)


def expected_block_size_by_the_kind_of_device(x):
    return -x


# Output blocks that are come back to, in whatever order: the pipeline writes them back and fetches them again.


def _added_again(x_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += x_ref[...]


REVISITED = pl.Buffered(1, revisit=pl.RevisitMode.ANY)


# pallas-lint: probe(f32[16,256])
def sums_of_rows_in_any_order(x):
    return pl.pallas_call(
        _added_again,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, 128), lambda i, j: (0, j), pipeline_mode=REVISITED),
        out_shape=like(x, (8, 256)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "arbitrary")),
    )(x)


def expected_sums_of_rows_in_any_order(x):
    return x[:8] + x[8:]


def _product_of_blocks(x_ref, y_ref, o_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


# pallas-lint: probe(f32[16,256], f32[256,128])
def matmul_with_the_contraction_outside(x, y):
    return pl.pallas_call(
        _product_of_blocks,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((8, 128), lambda k, i: (i, k)), pl.BlockSpec((128, 128), lambda k, i: (k, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda k, i: (i, 0), pipeline_mode=REVISITED),
        out_shape=like(x, (16, 128)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "arbitrary")),
    )(x, y)


def expected_matmul_with_the_contraction_outside(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32)
