"""Recipes for jax.lax, jax.nn, jax.scipy.special and jax.random."""

from __future__ import annotations

import jax.numpy as jnp
import jax.random as jr
import jax.scipy.special as special
import numpy as np
from jax import lax, nn
from recipes import ROWS, TILE, add, other, skip, wide

L = "jax.lax."

skip(
    "jax.lax",
    "after_all all_gather all_to_all psum pmax pmin pmean ppermute pshuffle pswapaxes psum_scatter axis_index axis_size "
    "pbroadcast pcast pvary psend precv all_gather_reduced ragged_all_to_all with_sharding_constraint create_token "
    "infeed outfeed preduced unreduced_psum psum_scatter_start broadcast_shapes conv_dimension_numbers "
    "conv_general_permutations conv_shape_tuple conv_general_shape_tuple conv_transpose_shape_tuple "
    "reduce_window_shape_tuple padtype_to_pads dtype tie_in naryop naryop_dtype_rule standard_naryop unop "
    "unop_dtype_rule broadcasting_shape_rule subvals xeinsum top_k_shape standard_primitive multi_indices "
    "conv_general_dilated_local ragged_dot_general scaled_dot empty2 select_and_gather_add select_and_scatter "
    "select_and_scatter_add dce_sink reduced_psum shape_as_value polynomial",
)
skip("jax.nn", "get_scaled_dot_general_config scaled_dot_general scaled_matmul")
skip("jax.scipy.special", "lpmn lpmn_values sph_harm sph_harm_y")
skip("jax.random", "shuffle key_impl key_dtype Key")


def _called(name: str, *arguments, **keywords):
    return getattr(lax, name)(*arguments, **keywords)


for _name in ("approx_max_k", "approx_min_k"):
    add(L + _name, plain=("x", lambda x, n=_name: _called(n, x, 4)))
for _name in ("argmax", "argmin"):
    add(
        L + _name,
        axis0=("x", lambda x, n=_name: _called(n, x, 0, jnp.int32)),
        axis1=("x", lambda x, n=_name: _called(n, x, 1, jnp.int32)),
    )
add(L + "associative_scan", plain=("x", lambda x: lax.associative_scan(jnp.add, x)))
add(L + "batch_matmul", plain=("xm", lambda x, m: lax.batch_matmul(x[None], m[None])))
add(
    L + "bitcast_convert_type",
    plain=(
        "x",
        lambda x: lax.bitcast_convert_type(x, {4: jnp.int32, 2: jnp.int16, 1: jnp.int8}[x.dtype.itemsize]),
    ),
    f32=("i", lambda i: lax.bitcast_convert_type(i, jnp.float32)),
)
add(
    L + "broadcast",
    plain=("v", lambda v: lax.broadcast(v, (ROWS,))),
    scalar=("c", lambda c: lax.broadcast(c, TILE)),
)
add(
    L + "broadcast_in_dim",
    row=("v", lambda v: lax.broadcast_in_dim(v, TILE, (1,))),
    tile=("x", lambda x: lax.broadcast_in_dim(jnp.max(x, axis=0, keepdims=True), TILE, (0, 1))),
    column=("x", lambda x: lax.broadcast_in_dim(jnp.max(x, axis=1), TILE, (0,))),
    scalar=("c", lambda c: lax.broadcast_in_dim(c, TILE, ())),
)
add(L + "broadcast_to_rank", plain=("v", lambda v: lax.broadcast_to_rank(v, 2)))
add(
    L + "broadcasted_iota",
    lanes=("", lambda: lax.broadcasted_iota(jnp.int32, TILE, 1)),
    rows=("", lambda: lax.broadcasted_iota(jnp.int32, TILE, 0)),
    f32=("", lambda: lax.broadcasted_iota(jnp.float32, TILE, 1)),
    u32=("", lambda: lax.broadcasted_iota(jnp.uint32, TILE, 1)),
)
add(
    L + "iota",
    i32=("", lambda: lax.iota(jnp.int32, 128)),
    f32=("", lambda: lax.iota(jnp.float32, 128)),
)
add(L + "clamp", plain=("x", lambda x: lax.clamp(jnp.zeros((), x.dtype), x, jnp.ones((), x.dtype))))
add(L + "collapse", plain=("x", lambda x: lax.collapse(x, 0, 2)))
add(L + "composite", plain=("x", lambda x: lax.composite(other, "my.op")(x)))
add(
    L + "concatenate",
    axis0=("xx", lambda x, y: lax.concatenate([x, y], 0)),
    axis1=("xx", lambda x, y: lax.concatenate([x, y], 1)),
)
add(
    L + "cond",
    value=("x", lambda x: lax.cond(jnp.max(wide(x)) > 0, other, lambda v: v, x)),
    scalar=("sx", lambda s, x: lax.cond(s > 0, other, lambda v: v, x)),
)
for _name in ("conv", "conv_general_dilated", "conv_transpose"):
    add(
        L + _name,
        plain=(
            "x",
            lambda x, n=_name: _called(n, x[None, None], jnp.ones((1, 1, 3, 3), x.dtype), (1, 1), "SAME"),
        ),
    )
add(
    L + "conv_general_dilated_patches",
    plain=("x", lambda x: lax.conv_general_dilated_patches(x[None, None], (3, 3), (1, 1), "SAME")),
)
add(
    L + "conv_with_general_padding",
    plain=(
        "x",
        lambda x: lax.conv_with_general_padding(
            x[None, None], jnp.ones((1, 1, 3, 3), x.dtype), (1, 1), ((1, 1), (1, 1)), None, None
        ),
    ),
)
add(
    L + "convert_element_type",
    f32=("x", lambda x: lax.convert_element_type(x, jnp.float32)),
    i32=("x", lambda x: lax.convert_element_type(x, jnp.int32)),
    bf16=("x", lambda x: lax.convert_element_type(x, jnp.bfloat16)),
    i8=("x", lambda x: lax.convert_element_type(x, jnp.int8)),
)
for _name in ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"]:
    add(
        L + _name,
        axis0=("x", lambda x, n=_name: _called(n, x, axis=0)),
        axis1=("x", lambda x, n=_name: _called(n, x, axis=1)),
        vector=("v", lambda v, n=_name: _called(n, v)),
    )
add(
    L + "custom_linear_solve",
    plain=("v", lambda v: lax.custom_linear_solve(lambda x: x * 2, v, lambda mv, b: b / 2)),
)
add(
    L + "custom_root",
    plain=("", lambda: lax.custom_root(lambda x: x - 1, jnp.float32(0), lambda f, x: x, lambda g, y: y)),
)
add(
    L + "dot",
    plain=("xm", lambda x, m: lax.dot(x, m)),
    preferred_f32=("xm", lambda x, m: lax.dot(x, m, preferred_element_type=jnp.float32)),
    preferred_i32=("xm", lambda x, m: lax.dot(x, m, preferred_element_type=jnp.int32)),
)


def _dot(x, y, contract, **keywords):
    return lax.dot_general(x, y, ((contract[0], contract[1]), ((), ())), **keywords)


add(
    L + "dot_general",
    plain=("xm", lambda x, m: _dot(x, m, ((1,), (0,)))),
    nn_f32=("xm", lambda x, m: _dot(x, m, ((1,), (0,)), preferred_element_type=jnp.float32)),
    nt_f32=("xx", lambda x, y: _dot(x, y, ((1,), (1,)), preferred_element_type=jnp.float32)),
    tn_f32=("xx", lambda x, y: _dot(x, y, ((0,), (0,)), preferred_element_type=jnp.float32)),
    nn_i32=("xm", lambda x, m: _dot(x, m, ((1,), (0,)), preferred_element_type=jnp.int32)),
    batch=(
        "xx",
        lambda x, y: lax.dot_general(
            x.reshape(2, ROWS // 2, 128),
            y.reshape(2, ROWS // 2, 128),
            (((2,), (2,)), ((0,), (0,))),
            preferred_element_type=jnp.float32,
        ),
    ),
)
add(L + "ragged_dot", plain=("xm", lambda x, m: lax.ragged_dot(x, m[None], jnp.array([ROWS], jnp.int32))))
add(L + "dynamic_index_in_dim", plain=("xs", lambda x, s: lax.dynamic_index_in_dim(x, s, 0)))
add(L + "dynamic_slice", plain=("xs", lambda x, s: lax.dynamic_slice(x, (s, 0), (8, 128))))
add(L + "dynamic_slice_in_dim", plain=("xs", lambda x, s: lax.dynamic_slice_in_dim(x, s, 8, 0)))
add(
    L + "dynamic_update_index_in_dim",
    plain=("xvs", lambda x, v, s: lax.dynamic_update_index_in_dim(x, v, s, 0)),
)
add(L + "dynamic_update_slice", plain=("xxs", lambda x, y, s: lax.dynamic_update_slice(x, y, (s, 0))))
add(
    L + "dynamic_update_slice_in_dim",
    plain=("xxs", lambda x, y, s: lax.dynamic_update_slice_in_dim(x, y, s, 0)),
)
add(L + "index_in_dim", plain=("x", lambda x: lax.index_in_dim(x, 0, 0)))
add(L + "index_take", plain=("xj", lambda x, j: lax.index_take(x, (j,), (0,))))
add(
    L + "slice",
    rows=("x", lambda x: lax.slice(x, (0, 0), (ROWS // 2, 128))),
    lanes=("x", lambda x: lax.slice(x, (0, 0), (ROWS, 64))),
    stride=("x", lambda x: lax.slice(x, (0, 0), (ROWS, 128), (2, 1))),
)
add(L + "slice_in_dim", plain=("x", lambda x: lax.slice_in_dim(x, 0, ROWS // 2, axis=0)))
add(
    L + "expand_dims",
    first=("x", lambda x: lax.expand_dims(x, (0,))),
    row=("v", lambda v: lax.expand_dims(v, (0,))),
)


def _with_index(i, c):
    """What hangs on the index; of numbers of 32 bits few become 8, or one."""
    return jnp.where(i < 2, other(c), c) if c.dtype.itemsize == 1 else c + i.astype(c.dtype)


add(
    L + "fori_loop",
    static=("x", lambda x: lax.fori_loop(0, 4, lambda i, c: other(c), x)),
    dynamic=("sx", lambda s, x: lax.fori_loop(0, s, lambda i, c: other(c), x)),
    unrolled=("x", lambda x: lax.fori_loop(0, 4, lambda i, c: other(c), x, unroll=True)),
    index=("x", lambda x: lax.fori_loop(0, 4, _with_index, x)),
)
add(
    L + "while_loop",
    vector=(
        "sx",
        lambda s, x: lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, other(c[1])), (s, x))[1],
    ),
    scalar=("s", lambda s: lax.while_loop(lambda c: c < 4, lambda c: c + 1, s)),
)
add(
    L + "scan",
    carry=("x", lambda x: lax.scan(lambda c, _: (other(c), None), x, None, length=4)[0]),
    xs=("x", lambda x: lax.scan(lambda c, r: (c + r, r), jnp.zeros((128,), x.dtype), x)),
)
add(L + "map", plain=("x", lambda x: lax.map(other, x)))
add(
    L + "switch",
    plain=("sx", lambda s, x: lax.switch(s, [lambda v: v, other, lambda v: other(other(v))], x)),
)
add(L + "platform_dependent", plain=("x", lambda x: lax.platform_dependent(x, default=other)))
add(L + "full", plain=("", lambda: lax.full(TILE, 1.0)))
add(L + "full_like", plain=("x", lambda x: lax.full_like(x, 1)))
add(L + "empty", plain=("", lambda: lax.empty(TILE, jnp.float32)))


def _along_rows() -> lax.GatherDimensionNumbers:
    """Dimension numbers of take_along_axis, the one gather that TPU lowers."""
    return lax.GatherDimensionNumbers((), (0,), (0,), operand_batching_dims=(1,), start_indices_batching_dims=(1,))


add(
    L + "gather",
    rows=("xq", lambda x, q: lax.gather(x, q, lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 128))),
    along=("xi", lambda x, i: lax.gather(x, i[..., None], _along_rows(), (1, 1), mode="promise_in_bounds")),
)
for _name in ["scatter", "scatter_add", "scatter_max", "scatter_min", "scatter_mul", "scatter_sub"]:
    add(
        L + _name,
        plain=(
            "xq",
            lambda x, q, n=_name: _called(n, x, q, x, lax.ScatterDimensionNumbers((1,), (0,), (0,))),
        ),
    )
add(
    L + "scatter_apply",
    plain=(
        "xq",
        lambda x, q: lax.scatter_apply(
            x, q, lambda v: v * 2, lax.ScatterDimensionNumbers((1,), (0,), (0,)), update_shape=TILE
        ),
    ),
)
add(L + "pad", plain=("x", lambda x: lax.pad(x, jnp.zeros((), x.dtype), ((0, ROWS, 0), (0, 0, 0)))))
add(
    L + "reduce",
    constant=("x", lambda x: lax.reduce(x, np.zeros((), x.dtype), lax.add, (1,))),
    plain=("x", lambda x: lax.reduce(x, jnp.zeros((), x.dtype), lax.add, (1,))),
)
for _name in ["sum", "max", "min", "prod", "and", "or", "xor"]:
    add(
        L + "reduce_" + _name,
        axis0=("x", lambda x, n=_name: _called("reduce_" + n, x, (0,))),
        axis1=("x", lambda x, n=_name: _called("reduce_" + n, x, (1,))),
        both=("x", lambda x, n=_name: _called("reduce_" + n, x, (0, 1))),
    )
add(
    L + "reduce_window",
    plain=("x", lambda x: lax.reduce_window(x, jnp.zeros((), x.dtype), lax.add, (2, 2), (1, 1), "SAME")),
)
add(L + "reduce_precision", plain=("x", lambda x: lax.reduce_precision(x, 8, 7)))
add(
    L + "reshape",
    flat=("x", lambda x: lax.reshape(x, (ROWS * 128,))),
    halve_lanes=("x", lambda x: lax.reshape(x, (2 * ROWS, 64))),
    leading=("x", lambda x: lax.reshape(x, (1, ROWS, 128))),
)
add(L + "rev", axis0=("x", lambda x: lax.rev(x, (0,))), axis1=("x", lambda x: lax.rev(x, (1,))))
add(L + "rng_bit_generator", plain=("", lambda: lax.rng_bit_generator(jnp.zeros((4,), jnp.uint32), TILE)[1]))
add(L + "rng_uniform", plain=("", lambda: lax.rng_uniform(jnp.float32(0), jnp.float32(1), TILE)))
for _name in ("select", "select_n"):
    add(
        L + _name,
        plain=("bxx", lambda b, x, y, n=_name: _called(n, b, x, y)),
        scalar=("scc", lambda s, c, d, n=_name: _called(n, s == 0, c, d)),
    )
add(L + "sort", plain=("x", lambda x: lax.sort(x, dimension=1)), vector=("v", lambda v: lax.sort(v)))
add(L + "sort_key_val", plain=("xx", lambda x, y: lax.sort_key_val(x, y)))
add(
    L + "split",
    axis0=("x", lambda x: lax.split(x, (ROWS // 2, ROWS // 2), 0)),
    axis1=("x", lambda x: lax.split(x, (64, 64), 1)),
)
add(L + "squeeze", plain=("x", lambda x: lax.squeeze(x[None], (0,))))
add(
    L + "top_k",
    plain=("x", lambda x: lax.top_k(x, 4)),
    unstable=("x", lambda x: lax.top_k(x, 4, is_stable=False)),
)
add(
    L + "transpose",
    tile=("x", lambda x: lax.transpose(x, (1, 0))),
    square=("m", lambda m: lax.transpose(m, (1, 0))),
)
add(
    L + "integer_pow",
    square=("x", lambda x: lax.integer_pow(x, 2)),
    reciprocal=("x", lambda x: lax.integer_pow(x, -1)),
    cube=("x", lambda x: lax.integer_pow(x, 3)),
    scalar=("c", lambda c: lax.integer_pow(c, 2)),
)
add(L + "pow", arrays=("xx", lambda x, y: lax.pow(x, y)), integer=("xi", lambda x, i: lax.pow(x, i)))
add(L + "optimization_barrier", plain=("x", lambda x: lax.optimization_barrier(x)))
add(L + "stop_gradient", plain=("x", lambda x: lax.stop_gradient(x)))
add(L + "tile", plain=("x", lambda x: lax.tile(x, (2, 1))))
add(L + "stack", plain=("xx", lambda x, y: lax.stack([x, y], 0)))
add(L + "unstack", plain=("x", lambda x: lax.unstack(x, 0)))
add(L + "zeros_like_array", plain=("x", lambda x: lax.zeros_like_array(x)))
add(L + "polygamma", plain=("xx", lambda x, y: lax.polygamma(x, y)))
add(L + "betainc", plain=("xxx", lambda a, b, c: lax.betainc(a, b, c)))
add(L + "regularized_incomplete_beta", plain=("xxx", lambda a, b, c: lax.regularized_incomplete_beta(a, b, c)))
add(L + "approx_tanh", plain=("x", lambda x: lax.approx_tanh(x)))


def _attention(x, y, z):
    q, k, v = (a[None, :, None, :] for a in (x, y, z))
    return nn.dot_product_attention(q, k, v)[0, :, 0, :]


N = "jax.nn."
add(N + "dot_product_attention", plain=("xxx", _attention))
add(
    N + "one_hot",
    column=("j", lambda j: nn.one_hot(j, 128)),
    scalar=("s", lambda s: nn.one_hot(s, 128)),
)
add(
    N + "gelu",
    approximate=("x", lambda x: nn.gelu(x)),
    exact=("x", lambda x: nn.gelu(x, approximate=False)),
)
for _name in ("softmax", "log_softmax"):
    add(
        N + _name,
        last=("x", lambda x, n=_name: getattr(nn, n)(x, axis=-1)),
        first=("x", lambda x, n=_name: getattr(nn, n)(x, axis=0)),
    )

S = "jax.scipy.special."
add(S + "bernoulli", plain=("", lambda: special.bernoulli(4)))
add(S + "bessel_jn", plain=("x", lambda x: special.bessel_jn(x, v=2)))
add(S + "multigammaln", plain=("x", lambda x: special.multigammaln(x, 2)))
add(S + "polygamma", plain=("x", lambda x: special.polygamma(2, x)))
add(S + "expn", plain=("x", lambda x: special.expn(2, x)))
add(S + "zeta", plain=("xx", lambda x, y: special.zeta(x, y)))
for _module, _of in ((S, special), (N, nn)):
    if hasattr(_of, "logsumexp"):
        add(
            _module + "logsumexp",
            keepdims=("x", lambda x, o=_of: o.logsumexp(x, axis=-1, keepdims=True)),
            drop=("x", lambda x, o=_of: o.logsumexp(x, axis=-1)),
            all=("x", lambda x, o=_of: o.logsumexp(x)),
        )


def _random(name: str, draw, *, shaped: bool = True) -> None:
    """Draw with a key made in the kernel, and with one passed in as Pallas TPU kernels get theirs."""
    add("jax.random." + name, plain=("", lambda: draw(jr.PRNGKey(0))))
    if shaped:
        add("jax.random." + name, ("tpu",), pallas_key=("k", draw))


add("jax.random.PRNGKey", plain=("", lambda: jr.PRNGKey(0)))
add("jax.random.key", plain=("", lambda: jr.key_data(jr.key(0))))
add("jax.random.key_data", plain=("", lambda: jr.key_data(jr.key(0))))
add("jax.random.wrap_key_data", plain=("", lambda: jr.key_data(jr.wrap_key_data(jnp.zeros(2, jnp.uint32)))))
add("jax.random.clone", plain=("", lambda: jr.clone(jr.PRNGKey(0))))
add("jax.random.split", plain=("", lambda: jr.split(jr.PRNGKey(0))))
add("jax.random.fold_in", plain=("", lambda: jr.fold_in(jr.PRNGKey(0), 1)))
add(
    "jax.random.fold_in",
    ("tpu",),
    pallas_key=("k", lambda k: jr.bits(jr.fold_in(k, 1), TILE)),
)
add("jax.random.categorical", plain=("x", lambda x: jr.categorical(jr.PRNGKey(0), x)))
for _name in [
    "bits",
    "cauchy",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "maxwell",
    "normal",
    "rademacher",
    "uniform",
    "lognormal",
]:
    _random(_name, lambda k, n=_name: getattr(jr, n)(k, shape=TILE))
_random("bernoulli", lambda k: jr.bernoulli(k, 0.5, TILE))
_random("beta", lambda k: jr.beta(k, 1.0, 2.0, TILE))
_random("binomial", lambda k: jr.binomial(k, 10.0, 0.5, TILE))
_random("ball", lambda k: jr.ball(k, 4, shape=(8,)), shaped=False)
_random("choice", lambda k: jr.choice(k, 8, (8,)), shaped=False)
_random("chisquare", lambda k: jr.chisquare(k, 2.0, TILE))
_random("dirichlet", lambda k: jr.dirichlet(k, jnp.ones(4), (8,)), shaped=False)
_random("double_sided_maxwell", lambda k: jr.double_sided_maxwell(k, 0.0, 1.0, TILE))
_random("f", lambda k: jr.f(k, 2.0, 3.0, TILE))
_random("gamma", lambda k: jr.gamma(k, 2.0, TILE))
_random("loggamma", lambda k: jr.loggamma(k, 2.0, TILE))
_random("generalized_normal", lambda k: jr.generalized_normal(k, 2.0, TILE))
_random("geometric", lambda k: jr.geometric(k, 0.5, TILE))
_random("multivariate_normal", lambda k: jr.multivariate_normal(k, jnp.zeros(4), jnp.eye(4), (8,)), shaped=False)
_random("orthogonal", lambda k: jr.orthogonal(k, 4), shaped=False)
_random("pareto", lambda k: jr.pareto(k, 2.0, TILE))
_random("permutation", lambda k: jr.permutation(k, 8), shaped=False)
_random("poisson", lambda k: jr.poisson(k, 2.0, TILE))
_random("randint", lambda k: jr.randint(k, TILE, 0, 10))
_random("rayleigh", lambda k: jr.rayleigh(k, 1.0, TILE))
_random("t", lambda k: jr.t(k, 2.0, TILE))
_random("triangular", lambda k: jr.triangular(k, 0.0, 0.5, 1.0, TILE))
_random("truncated_normal", lambda k: jr.truncated_normal(k, 0.0, 1.0, TILE))
_random("wald", lambda k: jr.wald(k, 1.0, TILE))
_random("weibull_min", lambda k: jr.weibull_min(k, 1.0, 1.0, TILE))
_random("multinomial", lambda k: jr.multinomial(k, 10.0, jnp.ones(4) / 4), shaped=False)
