"""Working kernels that say nothing of a backend, for every jax from 0.4.35 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _add(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


# pallas-lint: probe(f32[32,128], f32[32,128])
def add(x, y):
    return pl.pallas_call(_add, grid=(4,), in_specs=[ROWS, ROWS], out_specs=ROWS, out_shape=like(x))(x, y)


def expected_add(x, y):
    return x + y


def _double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


# pallas-lint: probe(f32[40,128])
def ragged_rows(x):
    block = pl.BlockSpec((16, 128), lambda i: (i, 0))
    grid = (pl.cdiv(x.shape[0], 16),)
    return pl.pallas_call(_double, grid=grid, in_specs=[block], out_specs=block, out_shape=like(x))(x)


def expected_ragged_rows(x):
    return x * 2


def _masked_sum(x_ref, o_ref, *, rows):
    @pl.when(pl.program_id(0) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    at = pl.program_id(0) * 16 + lax.broadcasted_iota(jnp.int32, (16, 128), 0)
    o_ref[...] += jnp.sum(jnp.where(at < rows, x_ref[...], 0.0), axis=0, keepdims=True)


# pallas-lint: probe(f32[40,128])
def masked_sum(x):
    return pl.pallas_call(
        functools.partial(_masked_sum, rows=x.shape[0]),
        grid=(pl.cdiv(x.shape[0], 16),),
        in_specs=[pl.BlockSpec((16, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((1, 128), lambda i: (0, 0)),
        out_shape=like(x, (1, 128)),
    )(x)


def expected_masked_sum(x):
    return jnp.sum(x, axis=0, keepdims=True)


def _softmax(x_ref, o_ref):
    x = x_ref[...]
    e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True)


# pallas-lint: probe(f32[32,128])
def softmax(x):
    return pl.pallas_call(_softmax, grid=(4,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x))(x)


def expected_softmax(x):
    return jax.nn.softmax(x, axis=1)


def _layer_norm(x_ref, scale_ref, shift_ref, o_ref):
    x = x_ref[...]
    centred = x - jnp.mean(x, axis=1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=1, keepdims=True)
    o_ref[...] = centred * lax.rsqrt(variance + 1e-5) * scale_ref[...] + shift_ref[...]


# pallas-lint: probe(f32[32,128], f32[1,128], f32[1,128])
def layer_norm(x, scale, shift):
    row = pl.BlockSpec((1, 128), lambda i: (0, 0))
    return pl.pallas_call(_layer_norm, grid=(4,), in_specs=[ROWS, row, row], out_specs=ROWS, out_shape=like(x))(
        x, scale, shift
    )


def expected_layer_norm(x, scale, shift):
    return jax.nn.standardize(x, axis=1, epsilon=1e-5) * scale + shift


def _rms_norm(x_ref, scale_ref, o_ref):
    x = x_ref[...]
    o_ref[...] = x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale_ref[...]


# pallas-lint: probe(f32[32,128], f32[1,128])
def rms_norm(x, scale):
    row = pl.BlockSpec((1, 128), lambda i: (0, 0))
    return pl.pallas_call(_rms_norm, grid=(4,), in_specs=[ROWS, row], out_specs=ROWS, out_shape=like(x))(x, scale)


def expected_rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def _both(x_ref, y_ref, sum_ref, product_ref):
    sum_ref[...] = x_ref[...] + y_ref[...]
    product_ref[...] = x_ref[...] * y_ref[...]


# pallas-lint: probe(f32[32,128], f32[32,128])
def several_outputs(x, y):
    return pl.pallas_call(
        _both, grid=(4,), in_specs=[ROWS, ROWS], out_specs=[ROWS, ROWS], out_shape=[like(x), like(y)]
    )(x, y)


def expected_several_outputs(x, y):
    return [x + y, x * y]


def _increment(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


# pallas-lint: probe(f32[32,128])
def in_place(x):
    return pl.pallas_call(
        _increment, grid=(4,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x), input_output_aliases={0: 0}
    )(x)


def expected_in_place(x):
    return x + 1


# pallas-lint: probe(f32[3,32,128])
def batched(x):
    return jax.vmap(pl.pallas_call(_double, grid=(4,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x, (32, 128))))(
        x
    )


def expected_batched(x):
    return x * 2


# pallas-lint: probe(f32[4,16,128])
def squeezed(x):
    one = pl.BlockSpec((None, 16, 128), lambda i: (i, 0, 0))
    return pl.pallas_call(_double, grid=(4,), in_specs=[one], out_specs=one, out_shape=like(x))(x)


def expected_squeezed(x):
    return x * 2


@jax.custom_vjp
def _square(x):
    return pl.pallas_call(_square_kernel, grid=(4,), in_specs=[ROWS], out_specs=ROWS, out_shape=like(x))(x)


def _square_kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * x_ref[...]


def _square_gradient(x_ref, g_ref, o_ref):
    o_ref[...] = 2 * x_ref[...] * g_ref[...]


def _square_backward(x, g):
    launched = pl.pallas_call(_square_gradient, grid=(4,), in_specs=[ROWS, ROWS], out_specs=ROWS, out_shape=like(x))
    return (launched(x, g),)


_square.defvjp(lambda x: (_square(x), x), _square_backward)


# pallas-lint: probe(f32[32,128])
def gradient(x):
    return jax.grad(lambda x: jnp.sum(_square(x)))(x)


def expected_gradient(x):
    return 2 * x


def _rows_in_a_loop(x_ref, o_ref):
    def body(i, total):
        return total + x_ref[pl.ds(i, 1), :]

    o_ref[...] = lax.fori_loop(0, x_ref.shape[0], body, jnp.zeros((1, 128), jnp.float32))


# pallas-lint: probe(f32[32,128])
def rows_in_a_loop(x):
    return pl.pallas_call(_rows_in_a_loop, out_shape=like(x, (1, 128)))(x)


def expected_rows_in_a_loop(x):
    return jnp.sum(x, axis=0, keepdims=True)


def _tree(operands, results):
    results["sum"][...] = operands["a"][...] + operands["b"][0][...]
    results["first"][...] = operands["a"][...]


# pallas-lint: probe(f32[32,128], f32[32,128])
def trees_of_operands(x, y):
    return pl.pallas_call(
        _tree,
        grid=(4,),
        in_specs=[{"a": ROWS, "b": (ROWS,)}],
        out_specs={"sum": ROWS, "first": ROWS},
        out_shape={"sum": like(x), "first": like(x)},
    )({"a": x, "b": (y,)})


def expected_trees_of_operands(x, y):
    return {"sum": x + y, "first": x}


def _transposed(x_ref, o_ref):
    o_ref[...] = x_ref[...].T


# pallas-lint: probe(f32[256,128])
def transposed(x):
    return pl.pallas_call(
        _transposed,
        grid=(2,),
        in_specs=[pl.BlockSpec((128, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((128, 128), lambda i: (0, i)),
        out_shape=like(x, (128, 256)),
    )(x)


def expected_transposed(x):
    return x.T


def _converted(x_ref, o_ref):
    o_ref[...] = x_ref[...].astype(o_ref.dtype)


# pallas-lint: probe(f32[32,128])
def to_bfloat16(x):
    block = pl.BlockSpec((16, 128), lambda i: (i, 0))
    return pl.pallas_call(
        _converted, grid=(2,), in_specs=[block], out_specs=block, out_shape=like(x, dtype=jnp.bfloat16)
    )(x)


def expected_to_bfloat16(x):
    return x.astype(jnp.bfloat16)


def _product(x_ref, y_ref, o_ref):
    @pl.when(pl.program_id(2) == 0)
    def _():
        o_ref[...] = jnp.zeros_like(o_ref)

    o_ref[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)


def block_product(x, y, block):
    return pl.pallas_call(
        _product,
        grid=(x.shape[0] // block, y.shape[1] // block, x.shape[1] // block),
        in_specs=[
            pl.BlockSpec((block, block), lambda i, j, k: (i, k)),
            pl.BlockSpec((block, block), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((x.shape[0], y.shape[1]), jnp.float32),
    )(x, y)


# pallas-lint: probe(f32[256,256], f32[256,256])
def matmul(x, y):
    return block_product(x, y, 128)


def expected_matmul(x, y):
    return x @ y


# pallas-lint: probe(bf16[256,128], bf16[128,256])
def matmul_of_bfloat16(x, y):
    return block_product(x, y, 128)


def expected_matmul_of_bfloat16(x, y):
    return jnp.dot(x, y, preferred_element_type=jnp.float32)
