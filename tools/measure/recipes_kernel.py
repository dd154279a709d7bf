"""Recipes for operators, array methods, indexing, jax.* transformations and Pallas functions of values."""

from __future__ import annotations

import importlib
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from recipes import KERNEL_ONLY, ROWS, TILE, add, other

# Keyed as the lookup spells them: "operator:%", "method:sum", "index:get", "index:at.set".
_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
for _sign, _call in _BINARY.items():
    add("operator:" + _sign, plain=("xx", _call), scalar=("cc", _call))
    if _sign in ("+", "-", "*", "/", "//", "%", "<", ">", "==", "<<", ">>"):
        add("operator:" + _sign, constant=("x", lambda x, f=_call: f(x, 2)))
add(
    "operator:%",
    compared=("x", lambda x: x % 2 == 0),
    scalar_compared=("s", lambda s: s % 2 == 0),
    scalar_constant=("s", lambda s: s % 4),
)
add("operator://", scalar_constant=("s", lambda s: s // 4))
add(
    "operator:**",
    square=("x", lambda x: x**2),
    cube=("x", lambda x: x**3),
    root=("x", lambda x: x**0.5),
    inverse=("x", lambda x: x**-1),
)
add("operator:@", plain=("xm", lambda x, m: x @ m), transposed=("xx", lambda x, y: x @ y.T))
add("operator:neg", plain=("x", operator.neg), scalar=("c", operator.neg))
add("operator:~", plain=("x", operator.invert), scalar=("c", operator.invert))
add("builtin:abs", plain=("x", abs))
add("builtin:divmod", plain=("xx", divmod))

add(
    "index:get",
    int=("x", lambda x: x[0]),
    element=("x", lambda x: x[0, 0]),
    rows=("x", lambda x: x[: ROWS // 2]),
    lanes=("x", lambda x: x[:, :64]),
    last=("x", lambda x: x[-1]),
    column=("x", lambda x: x[:, 0]),
)
add(
    "index:strided",
    rows=("x", lambda x: x[::2]),
    lanes=("x", lambda x: x[:, ::2]),
)
add("index:reversed", rows=("x", lambda x: x[::-1]), lanes=("x", lambda x: x[:, ::-1]))
add(
    "index:newaxis",
    first=("x", lambda x: x[None]),
    middle=("x", lambda x: x[:, None]),
    last=("x", lambda x: x[..., None]),
    row=("v", lambda v: v[None, :]),
    column=("x", lambda x: jnp.max(x, axis=1)[:, None]),
    mask_row=("v", lambda v: (v != 0)[None, :]),
    mask_column=("x", lambda x: (jnp.max(x, axis=1) != 0)[:, None]),
)
add(
    "index:dynamic",
    row=("xs", lambda x, s: x[s]),
    lane=("xs", lambda x, s: x[:, s]),
    element=("xs", lambda x, s: x[s, s]),
)
add(
    "index:array",
    constant=("x", lambda x: x[jnp.array([0, 1])]),
    vector=("xj", lambda x, j: x[j]),
)
add("index:mask", plain=("x", lambda x: x[x > 0]))
for _method in ("set", "add", "multiply", "max", "min"):
    add(
        "index:at." + _method,
        row=("x", lambda x, m=_method: getattr(x.at[0], m)(1)),
        column=("x", lambda x, m=_method: getattr(x.at[:, 0], m)(1)),
        rows=("x", lambda x, m=_method: getattr(x.at[: ROWS // 2], m)(1)),
        dynamic=("xs", lambda x, s, m=_method: getattr(x.at[s], m)(1)),
    )

for _method in ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"):
    add(
        "method:" + _method,
        all=("x", lambda x, m=_method: getattr(x, m)()),
        axis0=("x", lambda x, m=_method: getattr(x, m)(0, keepdims=True)),
        axis1=("x", lambda x, m=_method: getattr(x, m)(1, keepdims=True)),
        axis0_drop=("x", lambda x, m=_method: getattr(x, m)(0)),
        axis1_drop=("x", lambda x, m=_method: getattr(x, m)(1)),
    )
for _method in ("cumsum", "cumprod"):
    add(
        "method:" + _method,
        axis0=("x", lambda x, m=_method: getattr(x, m)(0)),
        axis1=("x", lambda x, m=_method: getattr(x, m)(1)),
    )
add("method:sort", plain=("x", lambda x: x.sort()))
add("method:argsort", plain=("x", lambda x: x.argsort()))
add(
    "method:reshape",
    flat=("x", lambda x: x.reshape(-1)),
    halve_lanes=("x", lambda x: x.reshape(2 * ROWS, 64)),
    middle=("x", lambda x: x.reshape(ROWS, 1, 128)),
    leading=("x", lambda x: x.reshape(1, ROWS, 128)),
    split_rows=("x", lambda x: x.reshape(2, ROWS // 2, 128)),
)
add("method:ravel", plain=("x", lambda x: x.ravel()))
add("method:flatten", plain=("x", lambda x: x.flatten()))
add(
    "method:astype",
    f32=("x", lambda x: x.astype(jnp.float32)),
    bf16=("x", lambda x: x.astype(jnp.bfloat16)),
    f16=("x", lambda x: x.astype(jnp.float16)),
    i32=("x", lambda x: x.astype(jnp.int32)),
    i8=("x", lambda x: x.astype(jnp.int8)),
    u32=("x", lambda x: x.astype(jnp.uint32)),
    bool=("x", lambda x: x.astype(bool)),
    f8e4m3=("x", lambda x: x.astype(jnp.float8_e4m3fn)),
    i4=("x", lambda x: x.astype(jnp.int4)),
    scalar_f32=("s", lambda s: s.astype(jnp.float32)),
    scalar_i32=("c", lambda c: c.astype(jnp.int32)),
)
add("method:squeeze", plain=("x", lambda x: x[None].squeeze(0)))
add("method:swapaxes", plain=("x", lambda x: x.swapaxes(0, 1)))
add("method:transpose", plain=("x", lambda x: x.transpose()), square=("m", lambda m: m.transpose()))
add("method:T", plain=("x", lambda x: x.T), square=("m", lambda m: m.T))
add("method:mT", plain=("x", lambda x: x.mT))
add("method:clip", plain=("x", lambda x: x.clip(0, 1)))
add("method:round", plain=("x", lambda x: x.round()))
add("method:repeat", axis0=("x", lambda x: x.repeat(2, 0)), axis1=("x", lambda x: x.repeat(2, 1)))
add("method:view", i32=("x", lambda x: x.view(jnp.int32)), u32=("x", lambda x: x.view(jnp.uint32)))
add("method:take", plain=("xj", lambda x, j: x.take(j)))
add("method:dot", plain=("xm", lambda x, m: x.dot(m)))
# The tile itself: what cannot even be loaded and stored fails in everything.
add("kernel:identity", plain=("x", lambda x: x), added=("x", lambda x: x | x if x.dtype == bool else x + x))
add(
    "kernel:constant",
    numpy_scalar=("x", lambda x: x * np.float32(3)),
    numpy_array=("x", lambda x: x + np.arange(128)),
)


@jax.custom_vjp
def _doubled(x: Any) -> Any:
    return other(x)


_doubled.defvjp(lambda x: (other(x), None), lambda residual, g: (g + g,))


@jax.custom_jvp
def _twice(x: Any) -> Any:
    return other(x)


_twice.defjvps(lambda g, answer, x: g + g)

add("jax.vmap", plain=("x", lambda x: jax.vmap(other)(x)))
add("jax.grad", plain=("x", lambda x: jax.grad(lambda v: (v * v).sum())(x)))
add("jax.value_and_grad", plain=("x", lambda x: jax.value_and_grad(lambda v: (v * v).sum())(x)))
add("jax.jvp", plain=("xx", lambda x, y: jax.jvp(lambda v: v * v, (x,), (y,))))
add("jax.jit", plain=("x", lambda x: jax.jit(other)(x)))
add("jax.custom_jvp", plain=("x", lambda x: _twice(x)))
add("jax.custom_vjp", plain=("x", lambda x: _doubled(x)))
add("jax.checkpoint", plain=("x", lambda x: jax.checkpoint(other)(x)))
add("jax.remat", plain=("x", lambda x: jax.remat(other)(x)))
add("jax.named_call", plain=("x", lambda x: jax.named_call(other)(x)))
add("jax.tree.map", plain=("x", lambda x: jax.tree.map(other, (x, x))))
add("jax.debug.print", plain=("x", lambda x: (jax.debug.print("hi"), x)[1]))
add(
    "jax.debug.print",
    value=("x", lambda x: (jax.debug.print("{}", x), x)[1]),
    scalar=("sx", lambda s, x: (jax.debug.print("{}", s), x)[1]),
)
add("jax.debug.callback", plain=("x", lambda x: (jax.debug.callback(lambda v: None, x), x)[1]))
add(
    "jax.pure_callback",
    plain=("x", lambda x: jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(x.shape, x.dtype), x)),
)
add("jax.block_until_ready", plain=("x", lambda x: jax.block_until_ready(x)))


def _named_scope(x: Any) -> Any:
    with jax.named_scope("scope"):
        return other(x)


add("jax.named_scope", plain=("x", _named_scope))


def _module(*names: str) -> Any:
    """The first of these modules that exists, or None."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


P = "jax.experimental.pallas."
# These cannot be traced outside a kernel; the letter is the type that they return.
KERNEL_ONLY.update(
    {
        P + "program_id": "s",
        P + "num_programs": "s",
        P + "tpu.prng_random_bits": "i",
        P + "triton.debug_barrier": "x",
    }
)
_pl = _module("jax.experimental.pallas")
_tpu = _module("jax.experimental.pallas.tpu")
_triton = _module("jax.experimental.pallas.triton", "jax.experimental.pallas.gpu")


def _pallas(module: Any, prefix: str, name: str, backends: tuple[str, ...] | None, **variants: Any) -> None:
    if hasattr(module, name):
        add(P + prefix + name, backends, **variants)


_pallas(_pl, "", "cdiv", None, scalar=("s", lambda s: _pl.cdiv(s, 8)))
_pallas(_pl, "", "multiple_of", None, scalar=("s", lambda s: _pl.multiple_of(s, 8)))
_pallas(_pl, "", "num_programs", None, scalar=("s", lambda s: s + _pl.num_programs(0)))
_pallas(_pl, "", "program_id", None, scalar=("s", lambda s: s + _pl.program_id(0)))
_pallas(_pl, "", "dot", None, plain=("xm", lambda x, m: _pl.dot(x, m)))
_pallas(
    _pl, "", "reciprocal", None,
    plain=("x", lambda x: _pl.reciprocal(x)),
    approximate=("x", lambda x: _pl.reciprocal(x, approx=True)),
)  # fmt: skip
_pallas(
    _pl, "", "debug_print", None,
    plain=("x", lambda x: (_pl.debug_print("hi"), x)[1]),
    scalar=("sx", lambda s, x: (_pl.debug_print("{}", s), x)[1]),
    value=("x", lambda x: (_pl.debug_print("{}", x), x)[1]),
)  # fmt: skip
_pallas(
    _pl, "", "when", None,
    scalar=("sx", lambda s, x: (_pl.when(s == 0)(lambda: None), x)[1]),
)  # fmt: skip
_pallas(
    _tpu, "tpu.", "roll", ("tpu",),
    rows=("x", lambda x: _tpu.roll(x, 1, 0)),
    lanes=("x", lambda x: _tpu.roll(x, 1, 1)),
    dynamic=("xs", lambda x, s: _tpu.roll(x, s, 1)),
)  # fmt: skip
_pallas(
    _tpu, "tpu.", "repeat", ("tpu",),
    rows=("x", lambda x: _tpu.repeat(x, 2, 0)),
    lanes=("x", lambda x: _tpu.repeat(x, 2, 1)),
)  # fmt: skip
_pallas(
    _tpu, "tpu.", "bitcast", ("tpu",),
    i32=("x", lambda x: _tpu.bitcast(x, jnp.int32)),
    u32=("x", lambda x: _tpu.bitcast(x, jnp.uint32)),
    bf16=("x", lambda x: _tpu.bitcast(x, jnp.bfloat16)),
)  # fmt: skip
_pallas(
    _tpu, "tpu.", "prng_random_bits", ("tpu",),
    plain=("s", lambda s: (_tpu.prng_seed(s), _tpu.prng_random_bits(TILE))[1]),
)  # fmt: skip
_pallas(_triton, "triton.", "approx_tanh", ("triton",), plain=("x", lambda x: _triton.approx_tanh(x)))
_pallas(_triton, "triton.", "dot", ("triton",), plain=("xm", lambda x, m: _triton.dot(x, m)))
_pallas(_triton, "triton.", "debug_barrier", ("triton",), plain=("x", lambda x: (_triton.debug_barrier(), x)[1]))
