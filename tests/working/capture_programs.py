"""Working TPU kernels that need what is around them: a mesh, a memory, a device, operands that belong together."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
ON_TPU = jax.default_backend() == "tpu"


def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def _negate(x_ref, o_ref):
    o_ref[...] = -x_ref[...]


def negated(x):
    return pl.pallas_call(_negate, out_shape=like(x), compiler_params=pltpu.CompilerParams())(x)


# pallas-lint: probe(f32[32,128])
def rows_over_four_devices(x):
    mesh = Mesh(np.array(jax.devices()[:4]), ("rows",))
    return jax.jit(jax.shard_map(negated, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"), check_vma=False))(x)


def expected_rows_over_four_devices(x):
    return -x


# pallas-lint: probe(f32[16,256])
def tiles_over_two_axes(x):
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("rows", "columns"))
    tiles = P("rows", "columns")
    return jax.jit(jax.shard_map(negated, mesh=mesh, in_specs=tiles, out_specs=tiles, check_vma=False))(x)


def expected_tiles_over_two_axes(x):
    return -x


# pallas-lint: probe(f32[32,128], f32[32,128])
def explicit_axes(x, y):
    mesh = jax.make_mesh((2,), ("rows",), devices=jax.devices()[:2])
    split = P("rows")

    def local(x, y):
        return negated(x) + y

    return jax.shard_map(local, mesh=mesh, in_specs=(split, split), out_specs=split, check_vma=False)(x, y)


def expected_explicit_axes(x, y):
    return y - x


def _ones(key_ref, o_ref):
    o_ref[...] = jnp.ones_like(o_ref)


# pallas-lint: probe(f32[8,128])
def key_of_the_chip(x):
    key = pltpu.to_pallas_key(jax.random.key(0))
    scalars = pl.BlockSpec(memory_space=pltpu.SMEM)
    return x + pl.pallas_call(_ones, in_specs=[scalars], out_shape=like(x))(key)


def expected_key_of_the_chip(x):
    return x + 1


def _fetch(x_ref, o_ref, done):
    pltpu.async_copy(x_ref, o_ref, done).wait()


# pallas-lint: probe(f32[8,128])
def from_the_memory_of_the_host(x):
    return pl.pallas_call(
        _fetch,
        in_specs=[pl.BlockSpec(memory_space=pl.HOST)],
        out_specs=ANYWHERE,
        out_shape=like(x),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(x)


def expected_from_the_memory_of_the_host(x):
    return x


# pallas-lint: probe(f32[8,128])
def into_the_memory_of_the_host(x):
    return pl.pallas_call(
        _fetch,
        in_specs=[ANYWHERE],
        out_specs=pl.BlockSpec(memory_space=pl.HOST),
        out_shape=like(x),
        scratch_shapes=[pltpu.SemaphoreType.DMA],
    )(x)


def expected_into_the_memory_of_the_host(x):
    return x


def _begin(x_ref, o_ref, done):
    pltpu.make_async_copy(x_ref, o_ref, done).start()


def _end(x_ref, begun_ref, done, o_ref):
    pltpu.make_async_copy(x_ref, o_ref, done).wait()


# pallas-lint: probe(f32[8,128])
def copy_over_two_launches(x):
    semaphore = pl.BlockSpec(memory_space=pltpu.SEMAPHORE)
    o, done = pl.pallas_call(
        _begin,
        in_specs=[ANYWHERE],
        out_specs=[ANYWHERE, semaphore],
        out_shape=[like(x), pltpu.SemaphoreType.DMA(())],
    )(x)
    return pl.pallas_call(
        _end,
        in_specs=[ANYWHERE, ANYWHERE, semaphore],
        out_specs=ANYWHERE,
        out_shape=like(x),
        input_output_aliases={1: 0},
    )(x, o, done)


def expected_copy_over_two_launches(x):
    return x


# pallas-lint: probe(f32[8,128])
def for_tpus_alone(x):
    assert ON_TPU
    assert jax.default_backend() == "tpu", "it needs a TPU"
    assert jax.devices("tpu")[0].platform == "tpu"
    assert "TPU" in jax.local_devices()[0].device_kind
    return negated(x)


def expected_for_tpus_alone(x):
    return -x


# pallas-lint: probe(f32[8,128])
def plain_on_the_cpu(x):
    return -x if jax.devices()[0].platform == "cpu" else negated(x)


def expected_plain_on_the_cpu(x):
    return -x


def _steep(s_ref, total_ref, g_ref, o_ref):
    p = jnp.exp(100 * s_ref[...] - total_ref[...])
    o_ref[...] = p * (g_ref[...] - jnp.sum(p * g_ref[...], axis=1, keepdims=True))


def _residual(x):
    return jnp.broadcast_to(jax.nn.logsumexp(100 * x, axis=1, keepdims=True), x.shape)


# pallas-lint: probe(f32[8,128], f32[8,128])
def gradient_of_a_steep_softmax(x, g):
    return pl.pallas_call(_steep, out_shape=like(x))(x, _residual(x), g)


def expected_gradient_of_a_steep_softmax(x, g):
    p = jax.nn.softmax(100 * x, axis=1)
    return p * (g - jnp.sum(p * g, axis=1, keepdims=True))


def _refine(a_ref, o_ref):
    a = a_ref[...]
    found = 2 * jnp.eye(128, dtype=a.dtype) - a
    for _ in range(6):
        product = jnp.dot(found, a, preferred_element_type=jnp.float32)
        found = 2 * found - jnp.dot(product, found, preferred_element_type=jnp.float32)
    o_ref[...] = found


def _triangular(x):
    return jnp.tril(x, -1) / 1000 + jnp.eye(128)


# pallas-lint: probe(f32[128,128])
def inverse_of_a_triangular_matrix(x):
    return pl.pallas_call(_refine, out_shape=like(x))(_triangular(x))


def expected_inverse_of_a_triangular_matrix(x):
    return jnp.linalg.inv(_triangular(x))


def _store_where(at_ref, x_ref, mask_ref, o_ref):
    o_ref[...] = jnp.zeros_like(o_ref)
    rows = pl.ds(pl.multiple_of(at_ref[0], 8), 16)
    pltpu.store(o_ref.at[rows, :], x_ref[...], mask=mask_ref[...])


# pallas-lint: probe(f32[16,128])
def stored_where_there_is_room(x):
    room = (jnp.arange(16)[:, None] < 8) & (x < jnp.inf)
    at = jnp.full(1, 8, jnp.int32)
    spec = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1)
    return pl.pallas_call(_store_where, grid_spec=spec, out_shape=like(x))(at, x, room)


def expected_stored_where_there_is_room(x):
    return jnp.zeros_like(x).at[8:].set(x[:8])


if __name__ == "__main__":
    x = jnp.sin(jnp.arange(32.0 * 128)).reshape(32, 128)
    rows_over_four_devices(x)
    tiles_over_two_axes(x.reshape(16, 256))
    split = jax.NamedSharding(jax.make_mesh((2,), ("rows",), devices=jax.devices()[:2]), P("rows"))
    explicit_axes(jax.device_put(x, split), jax.device_put(x, split))
    for each in (from_the_memory_of_the_host, into_the_memory_of_the_host, plain_on_the_cpu):
        jax.block_until_ready(each(x[:8]))
    for each in (key_of_the_chip, copy_over_two_launches):  # they run on a TPU alone
        jax.eval_shape(each, x[:8])
    jax.jit(gradient_of_a_steep_softmax)(x[:8], x[8:16])
    jax.jit(inverse_of_a_triangular_matrix)(jnp.tile(x, (4, 1)))
    jax.block_until_ready(jax.jit(stored_where_there_is_room)(x[:16]))
