"""Working Triton kernels that load and store behind masks, and ask what device they run on. For jax from 0.8.3 on."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


PARAMS = plt.CompilerParams(num_warps=4)


def _rooted(x_ref, o_ref, *, size, block):
    at = pl.program_id(0) * block + jnp.arange(block)
    inside = at < size
    x = plt.load(x_ref.at[at], mask=inside, other=0.0)
    plt.store(o_ref.at[at], jnp.sqrt(jnp.abs(x)), mask=inside)


# pallas-lint: probe(f32[1000])
def last_block_behind_a_mask(x):
    size, block = x.shape[0], 256

    def kernel(x_ref, o_ref):
        _rooted(x_ref, o_ref, size=size, block=block)

    return pl.pallas_call(kernel, grid=(pl.cdiv(size, block),), out_shape=like(x), compiler_params=PARAMS)(x)


def expected_last_block_behind_a_mask(x):
    return jnp.sqrt(jnp.abs(x))


def _softmax_of_a_row(x_ref, o_ref, *, columns):
    row = pl.program_id(0)
    at = jnp.arange(1 << (columns - 1).bit_length())
    inside = at < columns
    x = plt.load(x_ref.at[row, at], mask=inside, other=-jnp.inf)
    e = jnp.exp(x - jnp.max(x, axis=0))
    plt.store(o_ref.at[row, at], e / jnp.sum(e, axis=0), mask=inside)


# pallas-lint: probe(f32[6,100])
def softmax_of_rows_of_any_length(x):
    def kernel(x_ref, o_ref):
        _softmax_of_a_row(x_ref, o_ref, columns=x.shape[1])

    return pl.pallas_call(kernel, grid=(x.shape[0],), out_shape=like(x), compiler_params=PARAMS)(x)


def expected_softmax_of_rows_of_any_length(x):
    return jax.nn.softmax(x, axis=1)


def _kept(x_ref, keep_ref, o_ref):
    at = pl.program_id(0) * 128 + jnp.arange(128)
    keep = keep_ref[at]
    o_ref[at] = jnp.where(keep, plt.load(x_ref.at[at], mask=keep, other=0.0), 0.0)


# pallas-lint: probe(f32[512], bool[512])
def load_behind_a_mask_of_the_callers(x, keep):
    return pl.pallas_call(_kept, grid=(4,), out_shape=like(x), compiler_params=PARAMS)(x, keep)


def expected_load_behind_a_mask_of_the_callers(x, keep):
    return jnp.where(keep, x, 0.0)


def _softmax_gradient(scores_ref, lse_ref, g_ref, o_ref):
    p = jnp.exp(60.0 * scores_ref[...] - lse_ref[...])
    o_ref[...] = p * (g_ref[...] - jnp.sum(p * g_ref[...], axis=1, keepdims=True))


# pallas-lint: probe(f32[16,128], f32[16,1], f32[16,128])
def gradient_from_scores_and_their_sums(scores, lse, g):
    return pl.pallas_call(_softmax_gradient, out_shape=like(scores), compiler_params=PARAMS)(scores, lse, g)


def case_gradient_from_scores_and_their_sums():
    scores, g = jax.random.normal(jax.random.key(0), (2, 16, 128))
    lse = jax.nn.logsumexp(60.0 * scores, axis=1, keepdims=True)
    p = jax.nn.softmax(60.0 * scores, axis=1)
    return (scores, lse, g), p * (g - jnp.sum(p * g, axis=1, keepdims=True))


# pallas-lint: probe(f32[512])
def refuses_what_is_no_nvidia_gpu(x):
    kind = jax.devices()[0].device_kind
    if not kind.startswith("NVIDIA"):
        raise NotImplementedError(f"not supported on {kind}")

    def kernel(x_ref, o_ref):
        at = pl.program_id(0) * 128 + jnp.arange(128)
        o_ref[at] = x_ref[at] + 1.0

    return pl.pallas_call(kernel, grid=(4,), out_shape=like(x), compiler_params=PARAMS)(x)


def expected_refuses_what_is_no_nvidia_gpu(x):
    return x + 1.0
