"""Working kernels of neural networks that say nothing of a backend, for every jax from 0.4.35 on."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))
ROW = pl.BlockSpec((1, 128), lambda i: (0, 0))
COLUMN = pl.BlockSpec((8, 1), lambda i: (i, 0))


def like(x, shape=None, dtype=None):
    return jax.ShapeDtypeStruct(x.shape if shape is None else shape, x.dtype if dtype is None else dtype)


def _log_softmax(x_ref, o_ref, norm_ref):
    x = x_ref[...]
    most = jnp.max(x, axis=-1, keepdims=True)
    norm = most + jnp.log(jnp.sum(jnp.exp(x - most), axis=-1, keepdims=True))
    o_ref[...] = x - norm
    norm_ref[...] = norm


# pallas-lint: probe(f32[32,128])
def log_softmax_and_its_norm(x):
    return pl.pallas_call(
        _log_softmax,
        grid=(pl.cdiv(x.shape[0], 8),),
        in_specs=[ROWS],
        out_specs=[ROWS, COLUMN],
        out_shape=[like(x), like(x, (x.shape[0], 1))],
    )(x)


def expected_log_softmax_and_its_norm(x):
    return [jax.nn.log_softmax(x, axis=-1), jax.nn.logsumexp(x, axis=-1, keepdims=True)]


def _cross_entropy(logits_ref, labels_ref, o_ref):
    logits = logits_ref[...]
    most = jnp.max(logits, axis=1, keepdims=True)
    norm = jnp.log(jnp.sum(jnp.exp(logits - most), axis=1, keepdims=True)) + most
    chosen = lax.broadcasted_iota(jnp.int32, logits.shape, 1) == labels_ref[...]
    o_ref[...] = norm - jnp.sum(jnp.where(chosen, logits, 0.0), axis=1, keepdims=True)


# pallas-lint: probe(f32[8,128], i32[8,1]=[[3],[1],[0],[2],[127],[5],[6],[7]])
def cross_entropy(logits, labels):
    return pl.pallas_call(
        _cross_entropy, grid=(1,), in_specs=[ROWS, COLUMN], out_specs=COLUMN, out_shape=like(logits, (8, 1))
    )(logits, labels)


def expected_cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, axis=1), labels, axis=1)


def _rotated(x_ref, cos_ref, sin_ref, o_ref):
    half = x_ref.shape[-1] // 2
    first, second = x_ref[:, :half], x_ref[:, half:]
    cos, sin = cos_ref[...], sin_ref[...]
    o_ref[:, :half] = first * cos - second * sin
    o_ref[:, half:] = second * cos + first * sin


# pallas-lint: probe(f32[32,256], f32[32,128], f32[32,128])
def rotary_embedding(x, cos, sin):
    wide = pl.BlockSpec((8, 256), lambda i: (i, 0))
    return pl.pallas_call(_rotated, grid=(4,), in_specs=[wide, ROWS, ROWS], out_specs=wide, out_shape=like(x))(
        x, cos, sin
    )


def expected_rotary_embedding(x, cos, sin):
    first, second = jnp.split(x, 2, axis=1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=1)


def _gated(x_ref, gate_ref, up_ref, o_ref):
    x = x_ref[...]
    gate = jnp.dot(x, gate_ref[...], preferred_element_type=jnp.float32)
    up = jnp.dot(x, up_ref[...], preferred_element_type=jnp.float32)
    o_ref[...] = (gate * (1.0 / (1.0 + jnp.exp(-gate))) * up).astype(o_ref.dtype)


# pallas-lint: probe(f32[32,128], f32[128,256], f32[128,256])
def gated_linear_unit(x, gate, up):
    weights = pl.BlockSpec((128, 128), lambda i, j: (0, j))
    return pl.pallas_call(
        _gated,
        grid=(2, 2),
        in_specs=[pl.BlockSpec((16, 128), lambda i, j: (i, 0)), weights, weights],
        out_specs=pl.BlockSpec((16, 128), lambda i, j: (i, j)),
        out_shape=like(x, (32, 256)),
    )(x, gate, up)


def expected_gated_linear_unit(x, gate, up):
    return jax.nn.silu(x @ gate) * (x @ up)


def _linear_with(activation, x_ref, w_ref, b_ref, o_ref):
    y = jnp.dot(x_ref[...], w_ref[...], preferred_element_type=jnp.float32) + b_ref[...]
    o_ref[...] = activation(y)


def linear(x, w, b, activation):
    return pl.pallas_call(
        functools.partial(_linear_with, activation),
        grid=(x.shape[0] // 8,),
        in_specs=[ROWS, pl.BlockSpec(w.shape, lambda i: (0, 0)), pl.BlockSpec(b.shape, lambda i: (0, 0))],
        out_specs=pl.BlockSpec((8, w.shape[1]), lambda i: (i, 0)),
        out_shape=like(x, (x.shape[0], w.shape[1])),
    )(x, w, b)


# pallas-lint: probe(f32[16,128], f32[128,256], f32[1,256])
def two_activations(x, w, b):
    return linear(x, w, b, lambda y: jnp.maximum(y, 0.0)), linear(x, w, b, jnp.tanh)


def expected_two_activations(x, w, b):
    y = x @ w + b
    return jax.nn.relu(y), jnp.tanh(y)


def _group_norm(x_ref, scale_ref, o_ref, *, groups):
    size = x_ref.shape[1] // groups
    for group in range(groups):
        columns = slice(group * size, (group + 1) * size)
        x = x_ref[:, columns]
        centred = x - jnp.mean(x, axis=1, keepdims=True)
        spread = lax.rsqrt(jnp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
        o_ref[:, columns] = centred * spread * scale_ref[:, columns]


# pallas-lint: probe(f32[16,256], f32[1,256])
def group_norm(x, scale):
    wide = pl.BlockSpec((8, 256), lambda i: (i, 0))
    return pl.pallas_call(
        functools.partial(_group_norm, groups=2),
        grid=(2,),
        in_specs=[wide, pl.BlockSpec((1, 256), lambda i: (0, 0))],
        out_specs=wide,
        out_shape=like(x),
    )(x, scale)


def expected_group_norm(x, scale):
    return jax.nn.standardize(x.reshape(16, 2, 128), axis=2, epsilon=1e-5).reshape(16, 256) * scale


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _norm(x, scale, epsilon):
    return _norm_forward(x, scale, epsilon)[0]


def _norm_kernel(x_ref, scale_ref, o_ref, inverse_ref, *, epsilon):
    x = x_ref[...]
    inverse = lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + epsilon)
    o_ref[...] = x * inverse * scale_ref[...]
    inverse_ref[...] = inverse


def _norm_forward(x, scale, epsilon):
    y, inverse = pl.pallas_call(
        functools.partial(_norm_kernel, epsilon=epsilon),
        grid=(x.shape[0] // 8,),
        in_specs=[ROWS, ROW],
        out_specs=[ROWS, COLUMN],
        out_shape=[like(x), like(x, (x.shape[0], 1))],
    )(x, scale)
    return y, (x, scale, inverse)


def _norm_gradient(x_ref, scale_ref, inverse_ref, g_ref, dx_ref, dscale_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        dscale_ref[...] = jnp.zeros_like(dscale_ref)

    unit = x_ref[...] * inverse_ref[...]
    g = g_ref[...]
    dscale_ref[...] += jnp.sum(g * unit, axis=0, keepdims=True)
    g = g * scale_ref[...]
    dx_ref[...] = (g - unit * jnp.mean(g * unit, axis=1, keepdims=True)) * inverse_ref[...]


def _norm_backward(epsilon, kept, g):
    x, scale, inverse = kept
    return tuple(
        pl.pallas_call(
            _norm_gradient,
            grid=(x.shape[0] // 8,),
            in_specs=[ROWS, ROW, COLUMN, ROWS],
            out_specs=[ROWS, ROW],
            out_shape=[like(x), like(scale)],
        )(x, scale, inverse, g)
    )


_norm.defvjp(_norm_forward, _norm_backward)


# pallas-lint: probe(f32[32,128], f32[1,128])
def norm_and_its_gradient(x, scale):
    return jax.grad(lambda x, scale: jnp.sum(_norm(x, scale, 1e-6) ** 2), argnums=(0, 1))(x, scale)


def expected_norm_and_its_gradient(x, scale):
    def norm(x, scale):
        return x * lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + 1e-6) * scale

    return jax.grad(lambda x, scale: jnp.sum(norm(x, scale) ** 2), argnums=(0, 1))(x, scale)


def _convolution(x_ref, w_ref, o_ref, *, taps):
    total = jnp.zeros(o_ref.shape, jnp.float32)
    for tap in range(taps):
        total += x_ref[pl.ds(tap, o_ref.shape[0]), :] * w_ref[pl.ds(tap, 1), :]
    o_ref[...] = total


# pallas-lint: probe(f32[18,128], f32[3,128])
def depthwise_convolution(x, w):
    return pl.pallas_call(functools.partial(_convolution, taps=w.shape[0]), out_shape=like(x, (16, 128)))(x, w)


def expected_depthwise_convolution(x, w):
    return sum(x[tap : tap + 16] * w[tap] for tap in range(3))


def _causal(q_ref, k_ref, v_ref, o_ref, *, block):
    q = q_ref[...]
    rows = pl.program_id(0) * block + lax.broadcasted_iota(jnp.int32, (block, block), 0)

    def body(at, carry):
        most, total, values = carry
        here = pl.ds(at * block, block)
        scores = jnp.dot(q, k_ref[here, :].T, preferred_element_type=jnp.float32)
        columns = at * block + lax.broadcasted_iota(jnp.int32, (block, block), 1)
        scores = jnp.where(rows >= columns, scores, -1e30)
        now = jnp.maximum(most, jnp.max(scores, axis=1, keepdims=True))
        weights = jnp.exp(scores - now)
        fade = jnp.exp(most - now)
        values = values * fade + jnp.dot(weights, v_ref[here, :], preferred_element_type=jnp.float32)
        return now, total * fade + jnp.sum(weights, axis=1, keepdims=True), values

    start = (jnp.full((block, 1), -1e30), jnp.zeros((block, 1)), jnp.zeros(o_ref.shape))
    _, total, values = lax.fori_loop(0, pl.program_id(0) + 1, body, start)
    o_ref[...] = values / total


# pallas-lint: probe(f32[256,128], f32[256,128], f32[256,128])
def causal_attention(q, k, v):
    block = pl.BlockSpec((128, 128), lambda i: (i, 0))
    whole = pl.BlockSpec((256, 128), lambda i: (0, 0))
    return pl.pallas_call(
        functools.partial(_causal, block=128),
        grid=(2,),
        in_specs=[block, whole, whole],
        out_specs=block,
        out_shape=like(q),
    )(q, k, v)


def expected_causal_attention(q, k, v):
    scores = jnp.where(jnp.tril(jnp.ones((256, 256), bool)), q @ k.T, -1e30)
    return jax.nn.softmax(scores, axis=1) @ v


def _local(q_ref, k_ref, v_ref, o_ref, *, window):
    scores = jnp.dot(q_ref[...], k_ref[...].T, preferred_element_type=jnp.float32)
    distance = lax.broadcasted_iota(jnp.int32, scores.shape, 0) - lax.broadcasted_iota(jnp.int32, scores.shape, 1)
    seen = (distance >= 0) & (distance < window)
    scores = jnp.where(seen, scores, -1e30)
    weights = jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True))
    weights = weights / jnp.sum(weights, axis=1, keepdims=True)
    o_ref[...] = jnp.dot(weights, v_ref[...], preferred_element_type=jnp.float32)


# pallas-lint: probe(f32[2,128,128], f32[1,128,128], f32[1,128,128])
def local_attention_of_grouped_heads(q, k, v):
    head = pl.BlockSpec((None, 128, 128), lambda h: (h, 0, 0))
    shared = pl.BlockSpec((None, 128, 128), lambda h: (h // 2, 0, 0))
    return pl.pallas_call(
        functools.partial(_local, window=32),
        grid=(2,),
        in_specs=[head, shared, shared],
        out_specs=head,
        out_shape=like(q),
    )(q, k, v)


def expected_local_attention_of_grouped_heads(q, k, v):
    at = jnp.arange(128)
    distance = at[:, None] - at[None, :]
    scores = jnp.where((distance >= 0) & (distance < 32), q @ k[0].T, -1e30)
    return jax.nn.softmax(scores, axis=2) @ v[0]


def _adam(p_ref, g_ref, m_ref, v_ref, p_out, m_out, v_out, *, rate, first, second):
    g = g_ref[...]
    m = first * m_ref[...] + (1 - first) * g
    v = second * v_ref[...] + (1 - second) * g * g
    p_out[...] = p_ref[...] - rate * m * lax.rsqrt(v + 1e-8)
    m_out[...] = m
    v_out[...] = v


# pallas-lint: probe(f32[32,128], f32[32,128], f32[32,128], f32[32,128])
def optimiser_step_in_place(p, g, m, v):
    v = jnp.abs(v)
    return pl.pallas_call(
        functools.partial(_adam, rate=1e-3, first=0.9, second=0.999),
        grid=(4,),
        in_specs=[ROWS] * 4,
        out_specs=[ROWS] * 3,
        out_shape=[like(p), like(m), like(v)],
        input_output_aliases={0: 0, 2: 1, 3: 2},
    )(p, g, m, v)


def expected_optimiser_step_in_place(p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * jnp.abs(v) + 0.001 * g * g
    return [p - 1e-3 * m * lax.rsqrt(v + 1e-8), m, v]
