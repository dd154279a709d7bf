"""Working Triton kernels, for jax from 0.8.3 on."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def _masked_copy(x_ref, o_ref, *, size, block):
    at = pl.program_id(0) * block + jnp.arange(block)
    inside = at < size
    x = plgpu.load(x_ref.at[at], mask=inside, other=0.0)
    plgpu.store(o_ref.at[at], x + 1, mask=inside)


# pallas-lint: probe(f32[150])
def masked_by_index_array(x):
    return pl.pallas_call(
        functools.partial(_masked_copy, size=x.shape[0], block=64),
        grid=(pl.cdiv(x.shape[0], 64),),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


def expected_masked_by_index_array(x):
    return x + 1


def _masked_slices(x_ref, o_ref, *, size, block):
    rows = pl.ds(pl.program_id(0) * block, block)
    inside = pl.program_id(0) * block + jnp.arange(block) < size
    x = plgpu.load(x_ref.at[rows], mask=inside, other=0.0)
    plgpu.store(o_ref.at[rows], x * 2, mask=inside)


# pallas-lint: probe(f32[150])
def masked_by_slice(x):
    return pl.pallas_call(
        functools.partial(_masked_slices, size=x.shape[0], block=64),
        grid=(pl.cdiv(x.shape[0], 64),),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


def expected_masked_by_slice(x):
    return x * 2


def _softmax(x_ref, o_ref, *, block):
    row, columns = pl.program_id(0), jnp.arange(block)
    inside = columns < x_ref.shape[1]
    x = plgpu.load(x_ref.at[row, columns], mask=inside, other=-float("inf"))
    e = jnp.exp(x - jnp.max(x, axis=0))
    plgpu.store(o_ref.at[row, columns], e / jnp.sum(e, axis=0), mask=inside)


# pallas-lint: probe(f32[8,100])
def softmax(x):
    return pl.pallas_call(
        functools.partial(_softmax, block=pl.next_power_of_2(x.shape[1])),
        grid=(x.shape[0],),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


def expected_softmax(x):
    return jax.nn.softmax(x, axis=1)


def _layer_norm(x_ref, scale_ref, o_ref, *, block):
    row, columns = pl.program_id(0), jnp.arange(block)
    size = x_ref.shape[1]
    inside = columns < size
    x = plgpu.load(x_ref.at[row, columns], mask=inside, other=0.0)
    mean = jnp.sum(x, axis=0) / size
    centred = jnp.where(inside, x - mean, 0.0)
    variance = jnp.sum(centred * centred, axis=0) / size
    scale = plgpu.load(scale_ref.at[columns], mask=inside, other=0.0)
    plgpu.store(o_ref.at[row, columns], centred / jnp.sqrt(variance + 1e-5) * scale, mask=inside)


# pallas-lint: probe(f32[8,100], f32[100])
def layer_norm(x, scale):
    return pl.pallas_call(
        functools.partial(_layer_norm, block=pl.next_power_of_2(x.shape[1])),
        grid=(x.shape[0],),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x, scale)


def expected_layer_norm(x, scale):
    return jax.nn.standardize(x, axis=1, epsilon=1e-5) * scale


def _masked_tile(x_ref, o_ref):
    rows = pl.program_id(0) * 16 + jnp.arange(16)
    columns = jnp.arange(64)
    inside = (rows < x_ref.shape[0])[:, None] & (columns < x_ref.shape[1])[None, :]
    at = (rows[:, None], columns[None, :])
    plgpu.store(o_ref.at[at], plgpu.load(x_ref.at[at], mask=inside, other=0.0) * 2, mask=inside)


# pallas-lint: probe(f32[40,50])
def masked_in_two_dimensions(x):
    return pl.pallas_call(
        _masked_tile,
        grid=(pl.cdiv(x.shape[0], 16),),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


def expected_masked_in_two_dimensions(x):
    return x * 2


def _matmul(x_ref, y_ref, o_ref):
    o_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32).astype(o_ref.dtype)


# pallas-lint: probe(f16[64,64], f16[64,64])
def matmul(x, y):
    return pl.pallas_call(
        _matmul,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((32, 64), lambda i, j: (i, 0)), pl.BlockSpec((64, 32), lambda i, j: (0, j))],
        out_specs=pl.BlockSpec((32, 32), lambda i, j: (i, j)),
        out_shape=jax.ShapeDtypeStruct((64, 64), x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x, y)


def expected_matmul(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


def _long_product(x_ref, y_ref, o_ref):
    def body(k, total):
        x = x_ref[:, pl.ds(k * 32, 32)]
        y = y_ref[pl.ds(k * 32, 32), :]
        return total + jnp.dot(x, y, preferred_element_type=jnp.float32)

    steps = x_ref.shape[1] // 32
    o_ref[...] = jax.lax.fori_loop(0, steps, body, jnp.zeros(o_ref.shape, jnp.float32)).astype(o_ref.dtype)


# pallas-lint: probe(f16[32,128], f16[128,32])
def matmul_in_a_loop(x, y):
    return pl.pallas_call(
        _long_product,
        out_shape=jax.ShapeDtypeStruct((32, 32), x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4, num_stages=2),
    )(x, y)


def expected_matmul_in_a_loop(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32).astype(x.dtype)


def _gelu(x_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = 0.5 * x * (1 + jnp.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


# pallas-lint: probe(f32[256])
def gelu(x):
    block = pl.BlockSpec((64,), lambda i: (i,))
    return pl.pallas_call(
        _gelu,
        grid=(4,),
        in_specs=[block],
        out_specs=block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


def expected_gelu(x):
    return jax.nn.gelu(x)


def _row_sums(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], axis=1)


# pallas-lint: probe(f32[32,64])
def row_sums(x):
    return pl.pallas_call(
        _row_sums,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 64), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8,), lambda i: (i,)),
        out_shape=jax.ShapeDtypeStruct((32,), x.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(x)


def expected_row_sums(x):
    return jnp.sum(x, axis=1)


def _embedding(ids_ref, table_ref, o_ref):
    columns = jnp.arange(table_ref.shape[1])
    ids = ids_ref[...]
    o_ref[...] = plgpu.load(table_ref.at[ids[:, None], columns[None, :]])


# pallas-lint: probe(i32[16]=[3,1,0,2,5,4,7,6,3,1,0,2,5,4,7,6], f32[8,32])
def embedding(ids, table):
    return pl.pallas_call(
        _embedding,
        out_shape=jax.ShapeDtypeStruct((ids.shape[0], table.shape[1]), table.dtype),
        compiler_params=plgpu.CompilerParams(num_warps=4),
    )(ids, table)


def expected_embedding(ids, table):
    return table[ids]
