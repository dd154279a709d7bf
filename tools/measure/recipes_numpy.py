"""Recipes for jax.numpy functions whose signature does not show enough."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from recipes import ROWS, TILE, add, other, skip, wide

J = "jax.numpy."
HALF = np.array([True] * (ROWS // 2) + [False] * (ROWS // 2))

skip(
    "jax.numpy",
    "frombuffer fromfile fromiter fromstring load save savez from_dlpack get_printoptions set_printoptions "
    "printoptions array_repr array_str einsum_path frompyfunc trim_zeros broadcast_shapes can_cast promote_types "
    "result_type issubdtype isdtype iterable isscalar ndim shape size iscomplexobj isrealobj finfo iinfo",
)

add(J + "apply_along_axis", plain=("x", lambda x: jnp.apply_along_axis(other, 0, x)))
add(J + "apply_over_axes", plain=("x", lambda x: jnp.apply_over_axes(jnp.sum, x, (0, 1))))
add(
    J + "arange",
    vector=("", lambda: jnp.arange(128)),
    f32=("", lambda: jnp.arange(128, dtype=jnp.float32)),
    added=("x", lambda x: x + jnp.arange(128, dtype=x.dtype)),
    start=("s", lambda s: s * 128 + jnp.arange(128)),
)
add(
    J + "array",
    scalar=("x", lambda x: x + jnp.array(2, x.dtype)),
    value=("x", lambda x: jnp.array(x)),
    list=("", lambda: jnp.array([1.0, 2.0, 3.0, 4.0])),
    dtype=("x", lambda x: jnp.array(x, jnp.float32)),
)
add(
    J + "asarray",
    scalar=("x", lambda x: x + jnp.asarray(2, x.dtype)),
    value=("x", lambda x: jnp.asarray(x)),
    dtype=("x", lambda x: jnp.asarray(x, jnp.float32)),
)
for _name in [
    "float32",
    "bfloat16",
    "float16",
    "int32",
    "int16",
    "int8",
    "uint32",
    "uint16",
    "uint8",
    "bool_",
]:
    add(
        J + _name,
        plain=("x", lambda x, n=_name: getattr(jnp, n)(x)),
        constant=("x", lambda x, n=_name: x + getattr(jnp, n)(1).astype(x.dtype)),
        scalar=("s", lambda s, n=_name: getattr(jnp, n)(s)),
    )
add(
    J + "astype",
    f32=("x", lambda x: jnp.astype(x, jnp.float32)),
    i32=("x", lambda x: jnp.astype(x, jnp.int32)),
    bf16=("x", lambda x: jnp.astype(x, jnp.bfloat16)),
    i8=("x", lambda x: jnp.astype(x, jnp.int8)),
    bool=("x", lambda x: jnp.astype(x, jnp.bool_)),
)
add(J + "argwhere", plain=("x", lambda x: jnp.argwhere(x, size=8)))
add(J + "nonzero", plain=("x", lambda x: jnp.nonzero(x, size=8)))
add(J + "flatnonzero", plain=("x", lambda x: jnp.flatnonzero(x, size=8)))
add(J + "extract", plain=("bx", lambda c, x: jnp.extract(c, x, size=8)))
add(J + "compress", plain=("x", lambda x: jnp.compress(HALF, x, axis=0, size=ROWS // 2)))
add(J + "bincount", plain=("i", lambda x: jnp.bincount(x.reshape(-1), length=8)))
add(J + "block", plain=("xx", lambda x, y: jnp.block([[x, y], [y, x]])))
add(J + "choose", plain=("ixx", lambda i, x, y: jnp.choose(i, [x, y], mode="clip")))
add(
    J + "clip",
    plain=("x", lambda x: jnp.clip(x, 0, 1)),
    lower=("x", lambda x: jnp.clip(x, 0)),
    arrays=("xxx", lambda x, y, z: jnp.clip(x, y, z)),
    scalar=("c", lambda c: jnp.clip(c, 0, 1)),
)
add(J + "convolve", plain=("vv", lambda x, y: jnp.convolve(x, y)))
add(J + "correlate", plain=("vv", lambda x, y: jnp.correlate(x, y)))
# Three columns: no Triton array can have them.
add(J + "cross", ("tpu",), plain=("x", lambda x: jnp.cross(x[:, :3], x[:, 3:6])))
add(J + "delete", plain=("x", lambda x: jnp.delete(x, 0, axis=0)))
add(J + "diag", vector=("v", lambda v: jnp.diag(v)), matrix=("m", lambda m: jnp.diag(m)))
add(J + "diagflat", plain=("v", lambda v: jnp.diagflat(v)))
add(J + "diag_indices_from", plain=("m", lambda m: jnp.diag_indices_from(m)))
add(J + "diagonal", plain=("m", lambda m: jnp.diagonal(m)))
add(J + "digitize", plain=("xv", lambda x, v: jnp.digitize(x, v)))
for _name in ("dot", "matmul"):
    add(
        J + _name,
        plain=("xm", lambda x, m, n=_name: getattr(jnp, n)(x, m)),
        preferred_f32=("xm", lambda x, m, n=_name: getattr(jnp, n)(x, m, preferred_element_type=jnp.float32)),
        preferred_i32=("xm", lambda x, m, n=_name: getattr(jnp, n)(x, m, preferred_element_type=jnp.int32)),
        square=("mm", lambda x, m, n=_name: getattr(jnp, n)(x, m)),
        vector=("mv", lambda m, v, n=_name: getattr(jnp, n)(m, v)),
    )
add(J + "matvec", plain=("xv", lambda x, v: jnp.matvec(x, v)))
add(J + "vecmat", plain=("vm", lambda v, m: jnp.vecmat(v, m)))
add(J + "inner", plain=("xx", lambda x, y: jnp.inner(x, y)), vector=("vv", lambda x, y: jnp.inner(x, y)))
add(J + "outer", plain=("vv", lambda x, y: jnp.outer(x, y)))
add(J + "kron", plain=("x", lambda x: jnp.kron(x, jnp.ones((2, 2), x.dtype))))
add(J + "tensordot", plain=("xm", lambda x, m: jnp.tensordot(x, m, 1)))
add(J + "vdot", plain=("vv", lambda x, y: jnp.vdot(x, y)))
add(J + "vecdot", plain=("xx", lambda x, y: jnp.vecdot(x, y)))
add(
    J + "einsum",
    ij_jk=("xm", lambda x, m: jnp.einsum("ij,jk->ik", x, m)),
    ij_kj=("xx", lambda x, y: jnp.einsum("ij,kj->ik", x, y)),
    preferred_f32=("xm", lambda x, m: jnp.einsum("ij,jk->ik", x, m, preferred_element_type=jnp.float32)),
    ij_ij=("xx", lambda x, y: jnp.einsum("ij,ij->i", x, y)),
)
add(J + "dsplit", plain=("x", lambda x: jnp.dsplit(x[:, :, None].repeat(2, 2), 2)))
add(J + "eye", plain=("", lambda: jnp.eye(ROWS, 128)))
add(J + "fill_diagonal", plain=("m", lambda m: jnp.fill_diagonal(m, 1, inplace=False)))
add(J + "fromfunction", plain=("", lambda: jnp.fromfunction(lambda i, j: i + j, TILE, dtype=jnp.int32)))
add(J + "unravel_index", plain=("i", lambda i: jnp.unravel_index(i, TILE)))
for _name in ("zeros", "ones", "empty"):
    add(
        J + _name,
        plain=("", lambda n=_name: getattr(jnp, n)(TILE)),
        bf16=("", lambda n=_name: getattr(jnp, n)(TILE, jnp.bfloat16)),
        i32=("", lambda n=_name: getattr(jnp, n)(TILE, jnp.int32)),
        vector=("", lambda n=_name: getattr(jnp, n)(128)),
        scalar=("", lambda n=_name: getattr(jnp, n)(())),
    )
add(
    J + "full",
    plain=("", lambda: jnp.full(TILE, 1.0)),
    i32=("", lambda: jnp.full(TILE, 1)),
    infinite=("", lambda: jnp.full((128,), -jnp.inf)),
    value=("c", lambda c: jnp.full(TILE, c)),
)
add(J + "geomspace", plain=("", lambda: jnp.geomspace(1, 10, 128)))
add(J + "linspace", plain=("", lambda: jnp.linspace(0.0, 1.0, 128)))
add(J + "logspace", plain=("", lambda: jnp.logspace(0.0, 1.0, 128)))
add(J + "histogram2d", plain=("vv", lambda x, y: jnp.histogram2d(x, y)))
add(J + "histogramdd", plain=("x", lambda x: jnp.histogramdd(x[:, :2])))
add(J + "interp", plain=("xvv", lambda x, v, w: jnp.interp(x, v, w)))
add(J + "insert", plain=("x", lambda x: jnp.insert(x, 0, 1, axis=0)))
for _name in ["intersect1d", "setdiff1d", "setxor1d", "union1d"]:
    add(J + _name, plain=("vv", lambda x, y, n=_name: getattr(jnp, n)(x, y, size=8)))
for _name in ["unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]:
    add(J + _name, plain=("v", lambda x, n=_name: getattr(jnp, n)(x, size=8)))
add(J + "ix_", plain=("vv", lambda x, y: jnp.ix_(x, y)))
add(J + "lexsort", plain=("vv", lambda x, y: jnp.lexsort((x, y))))
add(J + "mask_indices", plain=("", lambda: jnp.mask_indices(8, jnp.triu, size=36)))
add(J + "meshgrid", plain=("wv", lambda x, y: jnp.meshgrid(x, y)))
add(J + "moveaxis", plain=("x", lambda x: jnp.moveaxis(x, 0, 1)))
add(
    J + "pad",
    rows=("x", lambda x: jnp.pad(x, ((0, ROWS), (0, 0)))),
    lanes=("x", lambda x: jnp.pad(x, ((0, 0), (0, 128)))),
    both=("x", lambda x: jnp.pad(x, ((0, ROWS), (0, 128)))),
)
add(J + "partition", plain=("x", lambda x: jnp.partition(x, 3)))
add(J + "argpartition", plain=("x", lambda x: jnp.argpartition(x, 3)))
for _name in ("percentile", "nanpercentile"):
    add(J + _name, plain=("x", lambda x, n=_name: getattr(jnp, n)(x, 50.0, axis=-1)))
for _name in ("quantile", "nanquantile"):
    add(J + _name, plain=("x", lambda x, n=_name: getattr(jnp, n)(x, 0.5, axis=-1)))
add(
    J + "piecewise",
    plain=("x", lambda x: jnp.piecewise(x, [x < 0, x >= 0], [other, lambda v: v])),
)
add(J + "place", plain=("xbx", lambda x, b, y: jnp.place(x, b, y, inplace=False)))
add(J + "put", plain=("xw", lambda x, w: jnp.put(x, jnp.arange(4), w, inplace=False)))
add(J + "put_along_axis", plain=("xix", lambda x, i, y: jnp.put_along_axis(x, i, y, axis=0, inplace=False)))
add(J + "polyfit", plain=("vv", lambda x, y: jnp.polyfit(x, y, 2)))
add(J + "poly", plain=("w", lambda x: jnp.poly(x)))
add(J + "polyadd", plain=("vv", lambda x, y: jnp.polyadd(x, y)))
add(J + "polysub", plain=("vv", lambda x, y: jnp.polysub(x, y)))
add(J + "polymul", plain=("ww", lambda x, y: jnp.polymul(x, y)))
add(J + "polydiv", plain=("ww", lambda x, y: jnp.polydiv(x, y)))
add(J + "polyder", plain=("w", lambda x: jnp.polyder(x)))
add(J + "polyint", plain=("w", lambda x: jnp.polyint(x)))
add(J + "polyval", plain=("wx", lambda p, x: jnp.polyval(p, x)))
add(J + "roots", plain=("w", lambda x: jnp.roots(x, strip_zeros=False)))
add(J + "ravel_multi_index", plain=("ii", lambda i, j: jnp.ravel_multi_index((i, j), TILE, mode="clip")))
add(
    J + "repeat",
    axis0=("x", lambda x: jnp.repeat(x, 2, axis=0)),
    axis1=("x", lambda x: jnp.repeat(x, 2, axis=1)),
    flat=("x", lambda x: jnp.repeat(x, 2)),
    row=("x", lambda x: jnp.repeat(jnp.max(x, axis=0, keepdims=True), 8, axis=0)),
)
add(
    J + "reshape",
    flat=("x", lambda x: jnp.reshape(x, (-1,))),
    halve_lanes=("x", lambda x: jnp.reshape(x, (2 * ROWS, 64))),
    leading=("x", lambda x: jnp.reshape(x, (1, ROWS, 128))),
    split_rows=("x", lambda x: jnp.reshape(x, (2, ROWS // 2, 128))),
    split_lanes=("x", lambda x: jnp.reshape(x, (ROWS, 2, 64))),
)
add(J + "ravel", plain=("x", lambda x: jnp.ravel(x)))
add(
    J + "roll",
    axis0=("x", lambda x: jnp.roll(x, 1, axis=0)),
    axis1=("x", lambda x: jnp.roll(x, 1, axis=1)),
    flat=("x", lambda x: jnp.roll(x, 1)),
    dynamic=("xs", lambda x, s: jnp.roll(x, s, axis=0)),
)
add(J + "rollaxis", plain=("x", lambda x: jnp.rollaxis(x, 1)))
add(J + "rot90", plain=("m", lambda x: jnp.rot90(x)))
add(J + "searchsorted", plain=("vx", lambda v, x: jnp.searchsorted(v, x)))
add(J + "select", plain=("bbxx", lambda a, b, x, y: jnp.select([a, b], [x, y])))
add(
    J + "split",
    axis0=("x", lambda x: jnp.split(x, 2, axis=0)),
    axis1=("x", lambda x: jnp.split(x, 2, axis=1)),
)
add(J + "array_split", plain=("x", lambda x: jnp.array_split(x, 2)))
add(
    J + "squeeze",
    plain=("x", lambda x: jnp.squeeze(x[None], 0)),
    lane=("x", lambda x: jnp.squeeze(jnp.max(x, axis=1, keepdims=True), 1)),
)
add(
    J + "stack",
    axis0=("xx", lambda x, y: jnp.stack([x, y])),
    last=("xx", lambda x, y: jnp.stack([x, y], -1)),
    vectors=("vv", lambda x, y: jnp.stack([x, y])),
)


def _columns(x):
    rows = wide(x)
    return [rows.max(1, keepdims=True).astype(x.dtype), rows.min(1, keepdims=True).astype(x.dtype)]


for _name in ("concatenate", "concat"):
    add(
        J + _name,
        axis0=("xx", lambda x, y, n=_name: getattr(jnp, n)([x, y], axis=0)),
        axis1=("xx", lambda x, y, n=_name: getattr(jnp, n)([x, y], axis=1)),
        columns=(
            "x",
            lambda x, n=_name: getattr(jnp, n)(_columns(x), axis=1),
        ),
    )
add(
    J + "take",
    constant=("x", lambda x: jnp.take(x, jnp.arange(8), axis=0)),
    fill=("xj", lambda x, j: jnp.take(x, j, axis=0)),
    clip=("xj", lambda x, j: jnp.take(x, j, axis=0, mode="clip")),
    vector=("vj", lambda v, j: jnp.take(v, j, mode="clip")),
    scalar=("xs", lambda x, s: jnp.take(x, s, axis=0)),
)
add(
    J + "take_along_axis",
    axis0=("xi", lambda x, i: jnp.take_along_axis(x, i, axis=0)),
    axis1=("xi", lambda x, i: jnp.take_along_axis(x, i, axis=1)),
    in_bounds0=("xi", lambda x, i: jnp.take_along_axis(x, i, axis=0, mode="promise_in_bounds")),
    in_bounds1=("xi", lambda x, i: jnp.take_along_axis(x, i, axis=1, mode="promise_in_bounds")),
    one_tile0=("xi", lambda x, i: jnp.take_along_axis(x[:8], i[:8], axis=0, mode="promise_in_bounds")),
)
for _name in ("hstack", "vstack", "dstack", "column_stack"):
    add(
        J + _name,
        tiles=("xx", lambda x, y, n=_name: getattr(jnp, n)([x, y])),
        vectors=("vv", lambda x, y, n=_name: getattr(jnp, n)([x, y])),
    )
add(J + "tile", rows=("x", lambda x: jnp.tile(x, (2, 1))), lanes=("x", lambda x: jnp.tile(x, (1, 2))))
add(J + "trace", plain=("m", lambda m: jnp.trace(m)))
add(J + "trapezoid", plain=("x", lambda x: jnp.trapezoid(x)))
add(J + "tri", plain=("", lambda: jnp.tri(ROWS, 128)))
for _name in ("tril_indices_from", "triu_indices_from"):
    add(J + _name, plain=("m", lambda m, n=_name: getattr(jnp, n)(m)))
add(J + "vander", plain=("v", lambda v: jnp.vander(v, 4)))
add(J + "vectorize", plain=("x", lambda x: jnp.vectorize(other, signature="(n)->(n)")(x)))
add(
    J + "where",
    arrays=("bxx", lambda b, x, y: jnp.where(b, x, y)),
    constant=("bx", lambda b, x: jnp.where(b, x, 0)),
    compared=("xx", lambda x, y: jnp.where(x > y, x, y)),
    iota=("x", lambda x: jnp.where(jnp.arange(128)[None, :] < 5, x, 0)),
    scalar=("sc", lambda s, c: jnp.where(s == 0, c, c + c)),
)
add(
    J + "broadcast_to",
    row=("x", lambda x: jnp.broadcast_to(jnp.max(x, axis=0, keepdims=True), TILE)),
    column=("x", lambda x: jnp.broadcast_to(jnp.max(x, axis=1, keepdims=True), TILE)),
    vector=("v", lambda v: jnp.broadcast_to(v, TILE)),
    scalar=("c", lambda c: jnp.broadcast_to(c, TILE)),
)
add(J + "transpose", tile=("x", lambda x: jnp.transpose(x)), square=("m", lambda x: jnp.transpose(x)))
add(J + "matrix_transpose", plain=("x", lambda x: jnp.matrix_transpose(x)))
add(J + "permute_dims", plain=("x", lambda x: jnp.permute_dims(x, (1, 0))))
add(
    J + "swapaxes",
    tile=("x", lambda x: jnp.swapaxes(x, 0, 1)),
    leading=("x", lambda x: jnp.swapaxes(x.reshape(2, ROWS // 2, 128), 0, 1)),
)
add(J + "unstack", plain=("x", lambda x: jnp.unstack(x)))
add(J + "unwrap", plain=("x", lambda x: jnp.unwrap(x)))
add(
    J + "expand_dims",
    first=("x", lambda x: jnp.expand_dims(x, 0)),
    last=("x", lambda x: jnp.expand_dims(x, -1)),
    column=("x", lambda x: jnp.expand_dims(jnp.max(x, axis=1), 1)),
    row=("v", lambda v: jnp.expand_dims(v, 0)),
)
add(J + "isin", plain=("xw", lambda x, w: jnp.isin(x, w)))
add(J + "packbits", plain=("b", lambda x: jnp.packbits(x, axis=1)))
add(J + "unpackbits", plain=("i", lambda x: jnp.unpackbits(x.astype(jnp.uint8), axis=1)))
add(J + "ldexp", plain=("xi", lambda x, i: jnp.ldexp(x, i)))
add(J + "nan_to_num", plain=("x", lambda x: jnp.nan_to_num(x)))
add(J + "resize", plain=("x", lambda x: jnp.resize(x, (2 * ROWS, 128))))
add(
    J + "power",
    arrays=("xx", lambda x, y: jnp.power(x, y)),
    square=("x", lambda x: jnp.power(x, 2)),
    root=("x", lambda x: jnp.power(x, 0.5)),
    scalar=("c", lambda c: jnp.power(c, 2)),
)
add(J + "cumulative_prod", plain=("x", lambda x: jnp.cumulative_prod(x, axis=1)))
add(J + "cumulative_sum", plain=("x", lambda x: jnp.cumulative_sum(x, axis=1)))
add(J + "diag_indices", plain=("", lambda: jnp.diag_indices(8)))
add(J + "identity", plain=("", lambda: jnp.identity(128)))
add(J + "kaiser", plain=("", lambda: jnp.kaiser(128, 2.0)))
add(J + "tril_indices", plain=("", lambda: jnp.tril_indices(8)))
add(J + "triu_indices", plain=("", lambda: jnp.triu_indices(8)))
add(
    J + "isfinite",
    plain=("x", lambda x: jnp.isfinite(x)),
    selected=("x", lambda x: jnp.where(jnp.isfinite(x), x, 0)),
    scalar=("c", lambda c: jnp.isfinite(c)),
)
for _name in ["bartlett", "blackman", "hamming", "hanning"]:
    add(J + _name, plain=("", lambda n=_name: getattr(jnp, n)(128)))
