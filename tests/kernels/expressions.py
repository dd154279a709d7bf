"""Expressions as kernels write them, for the comparison of what is inferred with what jax traces."""

from __future__ import annotations

# Refs of the kernel, by the name of what is loaded from them.
REFS: dict[str, tuple[tuple[int, ...], str]] = {
    "f": ((16, 128), "float32"),
    "h": ((16, 128), "bfloat16"),
    "g": ((16, 128), "float16"),
    "i": ((16, 128), "int32"),
    "b": ((16, 128), "int8"),
    "u": ((16, 128), "uint8"),
    "w": ((16, 128), "uint32"),
    "t": ((16, 128), "int16"),
    "v": ((128,), "float32"),
    "j": ((16,), "int32"),
    "c": ((2, 16, 128), "float32"),
    "q": ((128, 128), "bfloat16"),
    "p": ((128, 128), "float32"),
    "e": ((16, 128), "float8_e4m3fn"),
    "r": ((16, 1), "float32"),
}
PREPARATION = """\
f, h, g, i, b, u, w, t = f_ref[...], h_ref[...], g_ref[...], i_ref[...], b_ref[...], u_ref[...], w_ref[...], t_ref[...]
v, j, c, q, p, e, r = v_ref[...], j_ref[...], c_ref[...], q_ref[...], p_ref[...], e_ref[...], r_ref[...]
m = f > 0
k = pl.program_id(0)
s = f_ref[0, 0]
n = 3
half = 0.5
wide = jnp.float32(2)"""


def _products(left: str, operators: str, right: str) -> list[str]:
    return [f"{a} {o} {b}" for a in left.split() for o in operators.split() for b in right.split()]


EXPRESSIONS: list[str] = [
    # promotion
    *_products("f h g i b u w t m", "+ *", "2 2.5 n half True"),
    *_products("f h i b m", "+", "f h g i b u w t m k s r v"),
    *_products("b u t w i", "-", "b u t w i"),
    *_products("f h i b u m k s n", "/", "2 half f i"),
    *_products("f h i b k n", "// %", "2 3.0 f i"),
    *_products("f h i b", "**", "2 2.0 0.5 f"),
    *_products("i b u w m k", "& | ^", "1 i"),
    "m & m", "m | True", "~m", "~i", "-f", "-b", "+h", "abs(f)", "abs(b)", "i << 2", "b >> 4", "u >> 1", "k << 1",
    *_products("f h i b k s n", "> ==", "0 0.0 f i k"),
    "2 - f", "1.0 / i", "2 ** i", "1 - m", "n * half * h", "(k + 1) * 2.0", "k * half", "wide * h", "wide * b",
    "np.float32(2) * h", "np.int32(2) * b", "np.float64(2) * h", "np.pi * h", "math.pi * b", "np.sqrt(2.0) * f",
    "float('inf') * h", "-jnp.inf * h", "jnp.inf + i", "jnp.nan * h", "jnp.pi * b", "np.inf * b",
    "h * jnp.float32(0.5)", "h * jnp.array(0.5)", "h * jnp.asarray(0.5)", "h * jnp.array(0.5, jnp.float32)",
    "b * jnp.int8(2)", "h + jnp.zeros(())", "s * h", "s * 2", "f[0, 0] * h", "h.max() * f", "i.sum() * b",
    # casts
    "f.astype(jnp.bfloat16)", "f.astype('bfloat16')", "f.astype(h.dtype)", "f.astype(h_ref.dtype)", "i.astype(float)",
    "f.astype(int)", "f.astype(bool)", "f.astype(np.float32)", "f.astype(dtype=jnp.float16)", "f.astype(jnp.float64)",
    "f.astype(jnp.dtype('int8'))", "jnp.astype(f, jnp.int8)", "lax.convert_element_type(f, jnp.int32)",
    "lax.convert_element_type(2, jnp.int32)", "jnp.float32(k)", "jnp.bfloat16(f)", "jnp.int32(2)", "jnp.float32(n)",
    "jnp.bool_(i)", "jnp.asarray(f, jnp.bfloat16)", "jnp.array(f)", "jnp.asarray(3)", "jnp.asarray(3.0)",
    "jnp.array([1, 2])", "jnp.array([1.0, 2])", "jnp.array(3)", "jnp.array([k, 2])", "jnp.array(True)",
    "jnp.asarray(i, dtype=jnp.float32)", "f.view(jnp.int32)", "lax.bitcast_convert_type(f, jnp.uint32)",
    "lax.bitcast_convert_type(f, jnp.int8)", "lax.bitcast_convert_type(b, jnp.uint8)", "f.astype(jnp.result_type(h))",
    "h.astype(jnp.promote_types(h.dtype, jnp.float32))", "f.astype(jnp.int64)", "i.astype(jnp.uint64)",
    "lax.reduce_precision(f, 8, 7)", "f.astype(wide.dtype)", "jnp.float64(2) * h", "jnp.int64(2) * b",
    # constructors
    "jnp.zeros((16, 128))", "jnp.zeros((16, 128), jnp.bfloat16)", "jnp.zeros(16)", "jnp.zeros([16, 2], dtype=int)",
    "jnp.ones((8, 128), dtype=float)", "jnp.zeros(f.shape, h.dtype)", "jnp.zeros(f_ref.shape, dtype=f_ref.dtype)",
    "jnp.zeros_like(h)", "jnp.zeros_like(h_ref)", "jnp.ones_like(h, dtype=jnp.float32)", "jnp.full_like(h, 2)",
    "jnp.full_like(h, 2.0, dtype=jnp.int32)", "jnp.full_like(b, half)", "jnp.zeros_like(h, shape=(2, 3))",
    "jnp.full((16, 128), -jnp.inf)", "jnp.full((16, 128), 2)", "jnp.full((4,), 2, dtype=jnp.bfloat16)",
    "jnp.full((4,), s)", "jnp.full((4,), True)", "jnp.full((4,), h[0, 0])", "jnp.full((16, 128), -1e30, jnp.float32)",
    "jnp.full(f.shape, half, f.dtype)", "jnp.empty((8, 128), jnp.float16)", "jnp.empty_like(b)",
    "jnp.arange(128)", "jnp.arange(128.0)", "jnp.arange(0, 16)", "jnp.arange(4, 16)", "jnp.arange(0, 16, 2)",
    "jnp.arange(16, dtype=jnp.float32)", "jnp.arange(n)", "jnp.arange(16)[:, None]", "jnp.arange(2 * 8) + k * 16",
    "jnp.arange(f.shape[1])", "jnp.arange(f_ref.shape[0])", "jnp.arange(start=0, stop=8)", "jnp.arange(1.5, 4)",
    "lax.iota(jnp.int32, 16)", "lax.iota(jnp.float32, 16)", "lax.iota(int, 16)", "lax.iota(size=8, dtype=jnp.int8)",
    "lax.broadcasted_iota(jnp.int32, (16, 128), 1)", "lax.broadcasted_iota(jnp.int32, f.shape, 0)",
    "lax.broadcasted_iota(dtype=jnp.int32, shape=(16, 128), dimension=0)", "lax.full((16, 128), 1.0)",
    "lax.full((16, 128), 1, jnp.float32)", "lax.full_like(f, 0)", "lax.full_like(f, 2, jnp.int8)", "jnp.eye(16)",
    "jnp.eye(16, 128, dtype=jnp.bfloat16)", "jnp.identity(8)", "jnp.tri(16)", "jnp.linspace(0, 1, 16)",
    "jnp.tril(f)", "jnp.triu(h, k=1)", "jax.nn.one_hot(j, 8)", "jax.nn.one_hot(j, 8, dtype=jnp.bfloat16)",
    "jnp.meshgrid(j, v)[0]", "jnp.indices((4, 8))",
    # elementwise functions
    *(f"jnp.{name}({x})" for name in ("exp", "log", "sqrt", "tanh", "sin", "log1p", "exp2", "reciprocal")
      for x in ("f", "h", "i", "b")),
    *(f"jnp.{name}({x})" for name in ("abs", "negative", "square", "sign") for x in ("h", "i", "b", "w", "k")),
    *(f"jnp.{name}({x})" for name in ("floor", "ceil", "round", "trunc", "rint") for x in ("h", "f", "i")),
    *(f"jnp.{name}({x})" for name in ("isnan", "isfinite", "isinf", "signbit", "logical_not") for x in ("h", "f")),
    *(f"jax.nn.{name}({x})" for name in ("relu", "silu", "sigmoid", "gelu", "softplus") for x in ("f", "h")),
    *(f"lax.{name}({x})" for name in ("exp", "rsqrt", "logistic", "abs", "neg", "erf", "integer_pow") for x in ("h",)
      if name != "integer_pow"),
    "jax.nn.relu(i)", "jax.nn.softmax(h, axis=-1)", "jax.nn.softmax(f)", "jax.nn.log_softmax(h)", "jax.nn.relu(b)",
    "jnp.maximum(f, 0)", "jnp.maximum(h, 0.0)", "jnp.maximum(i, 0)", "jnp.minimum(h, f)", "jnp.maximum(b, 0.5)",
    "jnp.maximum(k, 0)", "jnp.minimum(k * 8, 16)", "jnp.maximum(1, 2.0)", "jnp.maximum(f, r)", "lax.max(f, f)",
    "lax.add(h, h)", "lax.rem(i, i)", "lax.rem(k, 2)", "lax.div(i, i)", "lax.div(k, 4)", "lax.mul(f, 2.0)",
    "lax.pow(f, f)", "lax.integer_pow(f, 2)", "lax.shift_right_logical(b, b)", "lax.clamp(0.0, f, 1.0)",
    "lax.clamp(0, k, 3)", "jnp.mod(k, 2)", "jnp.remainder(h, 2)", "jnp.fmod(i, 3)", "jnp.floor_divide(h, 2)",
    "jnp.power(h, 2)", "jnp.power(2, i)", "jnp.float_power(h, 2)", "jnp.hypot(f, h)", "jnp.arctan2(f, f)",
    "jnp.logaddexp(h, h)", "jnp.clip(h, 0, 1)", "jnp.clip(h, 0.0, 1.0)", "jnp.clip(i, 0, 1.5)", "jnp.clip(k, 0, 7)",
    "jnp.clip(f, min=0.0)", "h.clip(0, 1)", "f.clip(min=0)", "jnp.clip(b, 0, n)", "f.round()", "h.round(2)",
    "jnp.divmod(i, 2)[0]", "jnp.bitwise_and(b, 1)", "jnp.left_shift(b, 2)", "jnp.right_shift(i, 4)",
    "jnp.logical_and(m, f > 1)", "jnp.logical_or(m, i)", "jnp.equal(f, 0)", "jnp.not_equal(h, f)", "jnp.isclose(f, 1.0)",
    "jnp.logical_and(k > 0, k < 2)", "jnp.invert(m)", "jnp.bitwise_not(i)", "jnp.nan_to_num(h)", "jnp.cbrt(h)",
    "jnp.square(k)", "jnp.real(f)", "jnp.modf(f)[0]", "jnp.heaviside(f, 0.5)", "jnp.interp(f, v, v)",
    "lax.population_count(i)", "lax.clz(i)", "lax.stop_gradient(h)", "lax.square(h)", "jax.scipy.special.erf(h)",
    "jax.scipy.special.logsumexp(f, axis=1)", "jax.nn.logsumexp(f, axis=1, keepdims=True)", "jax.lax.sign(b)",
    "jax.nn.leaky_relu(h)", "jax.nn.elu(h, 1.0)", "jax.nn.hard_tanh(f)", "jax.nn.swish(h)", "jax.nn.gelu(i)",
    "jax.nn.relu6(h)", "jax.nn.standardize(f)", "jax.nn.glu(f)",
    # selection
    "jnp.where(m, f, 0)", "jnp.where(m, h, 0.0)", "jnp.where(m, f, h)", "jnp.where(m, 1.0, 0.0)", "jnp.where(m, 1, 0)",
    "jnp.where(m, h, -jnp.inf)", "jnp.where(k > 0, f, 0.0)", "jnp.where(k > 0, 1, 2)", "jnp.where(m, i, 0.5)",
    "jnp.where(m, r, v)", "jnp.where(m, b, 300)", "jnp.where(m, True, False)", "jnp.where(m, s, h)",
    "jnp.where(m, jnp.zeros_like(h), h)", "jnp.where(m, jnp.bfloat16(0), f)", "lax.select(m, f, f)", "lax.select(m, h, h)",
    "lax.select_n(m, f, f)", "jnp.select([m, ~m], [f, h])", "jnp.where(i == 0, wide, h)", "jnp.where(m, jnp.nan, b)",
    # reductions
    *(f"jnp.{name}({x}{a})" for name in ("sum", "max", "mean", "prod", "argmax", "cumsum")
      for x in ("f", "h", "i", "b", "m") for a in ("", ", axis=1", ", axis=0, keepdims=True", ", axis=-1")
      if not (name == "cumsum" and "keep" in a)),
    "jnp.any(m)", "jnp.all(m, axis=0)", "m.any()", "m.sum()", "m.sum(axis=1, keepdims=True)", "u.sum()", "t.sum()",
    "w.sum()", "f.sum()", "f.sum(1)", "f.sum(-1, keepdims=True)", "h.mean(axis=-1)", "i.mean()", "f.max(axis=(0, 1))",
    "jnp.sum(c, axis=(0, 2))", "jnp.sum(c, axis=(0, 2), keepdims=True)", "jnp.sum(h, dtype=jnp.float32)",
    "jnp.sum(h, axis=0, dtype=jnp.float32)", "h.sum(dtype=jnp.float32)", "jnp.mean(h, axis=1, dtype=jnp.float32)",
    "jnp.var(h, axis=1)", "jnp.std(f)", "jnp.var(i)", "f.std()", "jnp.min(c, 1)", "f.argmax(axis=1)", "f.argmin()",
    "jnp.argmax(f, axis=1, keepdims=True)", "lax.argmax(f, 1, jnp.int32)", "lax.argmax(f, axis=0, index_dtype=jnp.uint32)",
    "jnp.count_nonzero(m)", "jnp.ptp(f)", "jnp.amax(f, axis=0)", "jnp.average(h)", "jnp.median(f)",
    "jnp.linalg.norm(f)", "jnp.sum(k)", "jnp.sum(jnp.exp(h), axis=1)", "jnp.max(h, axis=1, initial=0.0)",
    "jnp.sum(f, where=m)", "lax.reduce_max(f, (0,))", "lax.reduce_sum(f, axes=(1,))", "jnp.nanmax(f)",
    "jnp.cumprod(b)", "jnp.cumsum(b, axis=0, dtype=jnp.int32)", "lax.cumsum(f, axis=1)", "lax.cummax(i, 0)",
    "jnp.logsumexp(f)" if False else "jax.nn.logsumexp(h)", "jnp.trace(p)", "jnp.diagonal(p)", "jnp.diag(p)", "jnp.diff(f)",
    # shapes
    "f.reshape(8, 256)", "f.reshape((-1,))", "f.reshape(-1)", "f.reshape(2, -1, 128)", "jnp.reshape(f, (128, 16))",
    "f.ravel()", "f.flatten()", "f.T", "c.T", "c.mT", "c.transpose(1, 0, 2)", "jnp.transpose(c, (2, 0, 1))",
    "jnp.swapaxes(c, 0, -1)", "c.swapaxes(1, 2)", "jnp.moveaxis(c, 0, -1)", "jnp.expand_dims(f, 0)", "f[None]",
    "jnp.expand_dims(f, (0, -1))", "jnp.squeeze(r, 1)", "r.squeeze()", "r.squeeze(-1)", "lax.squeeze(r, (1,))",
    "jnp.squeeze(r, axis=1)", "lax.expand_dims(v, (0,))", "jnp.broadcast_to(r, (16, 128))", "jnp.broadcast_to(s, (8, 128))",
    "jnp.broadcast_to(v, f.shape)", "lax.broadcast(v, (16,))", "lax.broadcast_in_dim(v, (16, 128), (1,))",
    "jnp.concatenate([f, f])", "jnp.concatenate([f, h], axis=1)", "jnp.stack([f, f])", "jnp.stack((v, v), axis=-1)",
    "jnp.hstack([f, f])", "jnp.vstack([f, f])", "jnp.concatenate((i, b), axis=-1)", "lax.concatenate([f, f], 0)",
    "jnp.tile(f, (2, 1))", "jnp.tile(v, 2)", "jnp.tile(v, (16, 1))", "jnp.repeat(f, 2, axis=0)", "jnp.repeat(v, 2)",
    "jnp.pad(f, ((0, 0), (1, 1)))", "jnp.pad(v, 4)", "jnp.roll(f, 1, axis=0)", "jnp.flip(f, 0)", "jnp.split(f, 2)[0]",
    "jnp.split(f, 2, axis=1)[1]", "jnp.array_split(f, 2)[0]", "jnp.atleast_2d(v)", "jnp.sort(f, axis=1)",
    "jnp.argsort(f, axis=1)", "lax.rev(f, (0,))", "lax.transpose(f, (1, 0))", "lax.reshape(f, (128, 16))",
    "jnp.ravel(c)", "c.reshape(c.shape[0] * 16, -1)", "f.reshape(f.shape[0], 1, 128)", "c.sum(0).T",
    "jnp.take(f, j, axis=0)", "jnp.take_along_axis(f, i, axis=1)", "lax.top_k(f, 4)[0]", "jnp.outer(j, v)",
    "f.repeat(2, axis=1)", "jnp.flipud(f)", "jnp.rollaxis(c, 2)", "lax.slice(f, (0, 0), (8, 128))",
    "lax.dynamic_slice(f, (k, 0), (8, 128))", "lax.dynamic_slice_in_dim(f, k, 8, axis=0)", "lax.slice_in_dim(f, 0, 8)",
    "lax.dynamic_index_in_dim(f, k, 0)", "lax.dynamic_index_in_dim(f, k, 0, keepdims=False)",
    "lax.dynamic_update_slice(f, f[:8], (k, 0))", "f.at[0].set(1.0)", "f.at[0, :].add(v)", "h.at[:, 0].get()",
    "lax.split(f, (8, 8))[0]", "lax.pad(f, 0.0, ((0, 0, 0), (1, 1, 0)))",
    # indexing
    "f[0]", "f[0, 1]", "f[:, 0]", "f[:8]", "f[2:10, :64]", "f[-1]", "f[..., 0]", "f[:, None, :]", "f[None, ..., None]",
    "f[k]", "c[0]", "c[:, 0]", "c[0, :, :64]", "c[1, ..., None]", "f[::2]", "f[:, ::-1]", "f[4:]", "f[:-4]", "f[-4:]",
    "v[3]", "f[()]", "f[j]", "f[j, :]", "f[jnp.arange(4)]", "f[m[:, 0]]" if False else "f[0][None, :]", "c[0][1][2]",
    "f[0:1]", "f[k, :][None]", "f[slice(0, 8)]", "f[tuple([0, 1])]", "f[np.int32(1)]",
    "f_ref[0]", "f_ref[:, 0]", "f_ref[0, 0]", "f_ref[pl.ds(0, 8)]", "f_ref[pl.ds(k, 8), :]", "f_ref[:, pl.ds(0, 64)]",
    "f_ref[pl.ds(k * 8, 8), pl.ds(0, 1)]", "f_ref[k]", "f_ref[:8, :]", "f_ref[0:1, :]", "c_ref[k]", "c_ref[0, 1]",
    "c_ref[:, 0, :]", "f_ref[pl.ds(0, 8, stride=2)]", "f_ref[()]", "f_ref[...][0]", "f_ref[:]", "f_ref.at[0][...]",
    "f_ref.at[pl.ds(0, 8)][...]", "f_ref.at[pl.ds(0, 8), :][:, 0]", "c_ref.at[0].at[1][...]", "f_ref[k, pl.ds(0, 8)]",
    "f_ref[pl.ds(0, 8)][:, None]", "h_ref[...] * f_ref[0, 0]", "f_ref[jnp.arange(4)]", "f_ref[j]", "f_ref[j, :]",
    # products
    "jnp.dot(h, q)", "h @ q", "jnp.dot(f, q)", "jnp.matmul(h, q, preferred_element_type=jnp.float32)", "f @ p.T",
    "jnp.dot(h, q, preferred_element_type=jnp.float32)", "h.dot(q)", "jnp.dot(f, v)", "v @ p", "jnp.dot(v, v)", "f @ v",
    "jnp.dot(q, h.T)", "jnp.einsum('ij,jk->ik', h, q)", "jnp.einsum('ij,kj->ik', f, f)", "jnp.einsum('ij,ij->i', f, f)",
    "jnp.einsum('ij,jk->ik', h, q, preferred_element_type=jnp.float32)", "jnp.einsum('ij->ji', f)",
    "jnp.einsum('bij,jk->bik', c, p)", "jnp.einsum('ij,jk', f, p)", "jnp.einsum('...ij,jk->...ik', c, p)", "c @ p",
    "jnp.matmul(c, p)", "jnp.matmul(c, c.mT)", "jnp.dot(c, p)", "jnp.tensordot(f, p, 1)", "jnp.tensordot(f, f, axes=2)",
    "jnp.inner(f, p)", "jnp.outer(v, v)", "jnp.vdot(f, f)", "lax.dot(h, q)", "lax.dot(h, q, preferred_element_type=jnp.float32)",
    "lax.dot_general(f, f, (((1,), (1,)), ((), ())))", "lax.dot_general(c, c, (((2,), (2,)), ((0,), (0,))))",
    "lax.dot_general(h, q, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32)",
    "lax.dot_general(h, q, dimension_numbers=(((1,), (0,)), ((), ())))", "lax.batch_matmul(c, c.mT)",
    "jnp.dot(b, b.T)", "jnp.dot(b, b.T, preferred_element_type=jnp.int32)", "jnp.dot(f, p, precision='highest')",
    "jnp.dot(u, b.T)", "jnp.dot(2.0, f)", "jnp.linalg.matmul(f, p)" if False else "jnp.vecdot(f, f)", "jnp.kron(j, j)",
    # Pallas
    "k", "pl.program_id(0) * 8", "pl.num_programs(0) - 1", "pl.multiple_of(k * 8, 8)", "pl.cdiv(k, 2)", "pl.cdiv(16, 3)",
    "pl.program_id(0) == 0", "k // 2", "k % 2", "jnp.minimum(k, n)", "k.astype(jnp.float32)", "k + jnp.arange(8)",
    "lax.fori_loop(0, 4, lambda a, y: y + a, f)", "lax.fori_loop(0, 4, lambda a, y: y + f_ref[a], v)",
    "lax.fori_loop(0, 4, lambda a, y: y * 2, 1.0)", "lax.fori_loop(0, k, lambda a, y: y + 1, 0)",
    "lax.fori_loop(0, 4, lambda a, y: (y[0] + 1, y[1] * 2), (0, f))[1]",
    "lax.fori_loop(0, 4, lambda a, y: (y[0] + 1, y[1] * 2), (0, f))[0]",
    "lax.while_loop(lambda y: y[0] < 4, lambda y: (y[0] + 1, y[1]), (0, h))[1]",
    "lax.cond(k == 0, lambda: f, lambda: f * 2)", "lax.cond(k == 0, lambda y: y, lambda y: -y, h)",
    "lax.switch(k, [lambda: f, lambda: f])", "lax.scan(lambda y, _: (y + 1, None), f, None, length=4)[0]",
    "jax.vmap(lambda y: y * 2)(f)", "jax.tree.map(lambda y: y * 2, (f, h))[1]", "jnp.vectorize(lambda y: y)(f)",
    "jax.lax.map(lambda y: y, f)", "functools.reduce(jnp.add, [f, h])", "sum([f, f])", "max(k, 3)" if False else "sum((i, 1))",
]  # fmt: skip
