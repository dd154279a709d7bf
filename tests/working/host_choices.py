"""Working kernels whose sizes and functions Python chooses while jax traces: numpy, `isinstance`, arithmetic."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _clipped(x_ref, o_ref, *, rows):
    o_ref[...] = jnp.minimum(x_ref[...], float(rows))


def _by_rows(x, rows):
    spec = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    kernel = functools.partial(_clipped, rows=rows)
    return pl.pallas_call(
        kernel, grid=(pl.cdiv(x.shape[0], rows),), in_specs=[spec], out_specs=spec, out_shape=like(x)
    )(x)


def _least_padded(length):
    sizes = np.array([8, 16, 32])
    return sizes[np.argmin(-(-length // sizes) * sizes)].item()


# pallas-lint: probe(f32[48,128])
def rows_by_argmin(x):
    return _by_rows(x, _least_padded(x.shape[0]))


def expected_rows_by_argmin(x):
    return jnp.minimum(x, 8.0)


# pallas-lint: probe(f32[48,128])
def rows_from_a_list(x):
    fitting = [size for size in np.array([8, 16, 32]).tolist() if x.shape[0] % size == 0]
    return _by_rows(x, max(fitting))


def expected_rows_from_a_list(x):
    return jnp.minimum(x, 16.0)


# pallas-lint: probe(f32[48,128])
def rows_by_common_divisor(x):
    return _by_rows(x, math.gcd(x.shape[0], 64))


def expected_rows_by_common_divisor(x):
    return jnp.minimum(x, 16.0)


def _column_sums(x_ref, o_ref):
    o_ref[...] = jnp.sum(x_ref[...], axis=0, keepdims=True)


# pallas-lint: probe(f32[64,256])
def sums_in_blocks_of_at_least_a_row(x):
    rows = max(8 // x.dtype.itemsize // 4, 1)
    return pl.pallas_call(
        _column_sums,
        grid=(8,),
        in_specs=[pl.BlockSpec((8, 256), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((None, rows, 256), lambda i: (i, 0, 0)),
        out_shape=like(x, (8, 1, 256)),
    )(x)


def expected_sums_in_blocks_of_at_least_a_row(x):
    return x.reshape(8, 8, 256).sum(1, keepdims=True)


def _window_start(step, rows):
    largest = jnp.maximum if isinstance(step, jax.Array) else max
    return largest(0, step - rows)


def _starts_added(x_ref, o_ref):
    rows = _window_start(3, 1)
    o_ref[...] = x_ref[...] + lax.fori_loop(0, 4, lambda step, total: total + _window_start(step, rows), 0)


# pallas-lint: probe(i32[8,128])
def function_by_isinstance(x):
    return pl.pallas_call(_starts_added, out_shape=like(x))(x)


def expected_function_by_isinstance(x):
    return x + 1


def _halved(step):
    match step:
        case int():
            return math.ceil(step / 2)
        case _:
            return (step + 1) // 2


def _halves_added(x_ref, o_ref):
    o_ref[...] = x_ref[...] + lax.fori_loop(0, 4, lambda step, total: total + _halved(step), _halved(3))


# pallas-lint: probe(i32[8,128])
def function_by_match(x):
    return pl.pallas_call(_halves_added, out_shape=like(x))(x)


def expected_function_by_match(x):
    return x + 6


def _largest_step(step):
    try:
        return max(int(step), 2)
    except TypeError:
        return jnp.maximum(step, 2)


def _largest_added(x_ref, o_ref):
    o_ref[...] = x_ref[...] + lax.fori_loop(0, 4, lambda step, total: total + _largest_step(step), 0)


# pallas-lint: probe(i32[8,128])
def function_by_failure(x):
    return pl.pallas_call(_largest_added, out_shape=like(x))(x)


def expected_function_by_failure(x):
    return x + 9
