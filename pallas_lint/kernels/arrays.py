"""Shapes and dtypes of what jnp, lax and jax.nn functions return, as far as their arguments tell."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import evolve

from pallas_lint.kernels import indexing
from pallas_lint.kernels.dtypes import bits, canonical, dtype_of, inexact, is_float, operand_dtype, promote
from pallas_lint.kernels.operands import (
    Keywords,
    argument,
    axes,
    broadcast,
    integer,
    leaves,
    shape,
    shape_argument,
    unknown_of_rank,
)
from pallas_lint.kernels.products import PRODUCTS, infer_einsum, infer_product
from pallas_lint.kernels.reshaping import RESHAPING
from pallas_lint.kernels.symbols import arithmetic
from pallas_lint.kernels.values import NONE, Array, Const, Dim, Ref, Seq, Shape, Sym, Value, dim, from_dim

if TYPE_CHECKING:
    from collections.abc import Callable

    Rule = Callable[[str, list[Value], Keywords], Value]

__all__ = ["bits", "broadcast", "dtype_of", "infer"]


def infer(name: str, args: list[Value], keywords: Keywords, x64: bool = False, more: bool = False) -> Value:
    """What `name(*args, **keywords)` returns; an Array of unknown shape and dtype for what is not modelled.

    `more`: there are arguments that are not seen, as in `x.reshape(-1, *sizes)`.
    """
    rule = _LAX_RULES.get(name) or _RULES.get(name.rpartition(".")[2])
    if rule is None or more:
        return Array()
    try:
        result = rule(name, args, keywords)
        if x64 and rule is _random and isinstance(result, Array) and result.dtype in ("f64", "i64"):
            return evolve(result, dtype=None)  # the flag may be set elsewhere in the file only
        return _canonical(result, x64)
    except (IndexError, StopIteration, TypeError, ValueError):
        return Array()  # a call with arguments that the function does not take


def _canonical(value: Value, x64: bool) -> Value:
    if isinstance(value, Array):
        dtype = canonical(value.dtype, x64)
        return value if dtype == value.dtype else evolve(value, dtype=dtype)
    if isinstance(value, Seq):
        return Seq(tuple(_canonical(item, x64) for item in value.items), value.kind, value.open)
    return value


# -- elementwise ---------------------------------------------------------------------------------------------------


def _operands(args: list[Value], keywords: Keywords) -> list[Value]:
    """Positional operands, or those by name."""
    return args or [value for name, value in keywords.items() if name in ("x", "y", "x1", "x2", "lhs", "rhs", "a")]


def _elementwise(name: str, args: list[Value], keywords: Keywords) -> Value:
    values = _operands(args, keywords)
    dtype, weak = promote([operand_dtype(value) for value in values])
    return Array(broadcast([shape(value) for value in values]), dtype, weak)


def _power(name: str, args: list[Value], keywords: Keywords) -> Value:
    """An integer array to the power of a float is weak; a bool counts as an integer."""
    result = _elementwise(name, args, keywords)
    if isinstance(result, Array) and result.dtype == "bool":
        return evolve(result, dtype=None)
    return result


def _floor_divide(name: str, args: list[Value], keywords: Keywords) -> Value:
    """Whether an integer array divided by a Python float stays weak hangs on the release of jax."""
    result = _elementwise(name, args, keywords)
    assert isinstance(result, Array)
    strong = any(isinstance(value, Array) and not value.weak for value in args)
    return Array(result.shape) if result.weak and strong and result.dtype == "f64" else result


def _floating(name: str, args: list[Value], keywords: Keywords) -> Value:
    result = _elementwise(name, args, keywords)
    assert isinstance(result, Array)
    return evolve(result, dtype=inexact(result.dtype))


def _activation(name: str, args: list[Value], keywords: Keywords) -> Value:
    """One array in, further arguments are settings: `elu(x, alpha)`, `softmax(x, axis)`."""
    return _floating(name, _operands(args, keywords)[:1], {})


def _comparison(name: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(broadcast([shape(value) for value in _operands(args, keywords)]), "bool")


def _predicate(name: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(shape(_operands(args, keywords)[0]), "bool")


def _same(name: str, args: list[Value], keywords: Keywords) -> Value:
    first = args[0] if args else keywords.get("x", keywords.get("operand", keywords.get("a")))
    if isinstance(first, Const):
        return Array((), *operand_dtype(first))
    return Array(first.shape, first.dtype, first.weak) if isinstance(first, Array) else Array()


def _rint(name: str, args: list[Value], keywords: Keywords) -> Value:
    result = _same(name, args, keywords)
    assert isinstance(result, Array)
    return result if result.dtype is None or is_float(result.dtype) else Array(result.shape, "f64")


def _clip(name: str, args: list[Value], keywords: Keywords) -> Value:
    bounds = [keywords[key] for key in ("min", "max", "a_min", "a_max") if key in keywords]
    values = [value for value in (*args, *([keywords["arr"]] if "arr" in keywords else []), *bounds) if value != NONE]
    return _elementwise(name, values, {})


def _clamp(name: str, args: list[Value], keywords: Keywords) -> Value:
    return _same(name, args[1:], keywords)


def _where(name: str, args: list[Value], keywords: Keywords) -> Value:
    values = [*args, *(keywords[key] for key in ("x", "y") if key in keywords)]
    if len(values) != 3:
        return Array()
    dtype, weak = promote([operand_dtype(value) for value in values[1:]])
    return Array(broadcast([shape(value) for value in values]), dtype, weak)


def _select(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`jnp.select(conditions, choices, default)`."""
    conditions, choices, default = args[0], args[1], argument(args, keywords, "default", 2) or Const(0)
    if not isinstance(conditions, Seq) or not isinstance(choices, Seq) or conditions.open or choices.open:
        return Array()
    dtype, weak = promote([operand_dtype(value) for value in (*choices.items, default)])
    return Array(broadcast([shape(value) for value in (*conditions.items, *choices.items, default)]), dtype, weak)


def _select_n(name: str, args: list[Value], keywords: Keywords) -> Value:
    return _same(name, args[1:], keywords)


def _pair(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`divmod`: two of what one of its halves is; `modf` and `frexp` are of other kinds."""
    result = _elementwise(name, args, keywords)
    return Seq((result, result))


# -- casts and constructors ----------------------------------------------------------------------------------------


def _like(name: str, args: list[Value], keywords: Keywords) -> Value:
    first = args[0]
    full = name.endswith("full_like")
    sizes, dtype = (first.shape, first.dtype) if isinstance(first, Array | Ref) else (shape(first), None)
    asked = argument(args, keywords, "dtype", 2 if full else 1)
    told = argument(args, keywords, "shape", 3 if full else 2)
    return Array(shape_argument(told) if told is not None else sizes, dtype_of(asked) if asked is not None else dtype)


def _filled(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = argument(args, keywords, "shape", 0)
    full = name.endswith("full")
    asked = argument(args, keywords, "dtype", 2 if full else 1)
    if asked is not None:
        return Array(shape_argument(sizes), dtype_of(asked))
    if not full:
        return Array(shape_argument(sizes), "f64")
    fill = argument(args, keywords, "fill_value", 1)
    return Array(shape_argument(sizes), *(operand_dtype(fill) if fill is not None else (None, False)))


def _random(name: str, args: list[Value], keywords: Keywords) -> Value:
    short = name.rpartition(".")[2]
    at = _SHAPE_OF_RANDOM[short]
    dtype = argument(args, keywords, "dtype", at + (3 if short == "randint" else 1))
    default = {"randint": "i64", "bernoulli": "bool", "rademacher": "i64", "bits": None}.get(short, "f64")
    sizes = argument(args, keywords, "shape", at)
    if short == "bernoulli" or (dtype is None and default is not None):
        return Array(None if sizes is None and short == "bernoulli" else shape_argument(sizes or Seq(())), default)
    return Array(shape_argument(sizes or Seq(())), None if dtype is None else dtype_of(dtype))


# Where these take the shape.
_SHAPE_OF_RANDOM = {
    **dict.fromkeys("normal uniform randint bits gumbel exponential laplace logistic cauchy rademacher".split(), 1),
    "bernoulli": 2,
    "truncated_normal": 3,
}
RANDOM = frozenset(f"jax.random.{name}" for name in _SHAPE_OF_RANDOM)


def _eye(name: str, args: list[Value], keywords: Keywords) -> Value:
    rows = argument(args, keywords, "n" if "n" in keywords else "N", 0)
    columns = None if name.endswith("identity") else argument(args, keywords, "M", 1)
    asked = argument(args, keywords, "dtype", 1 if name.endswith("identity") else 3)
    size = dim(rows) if rows is not None else None
    return Array((size, dim(columns) if columns is not None else size), "f64" if asked is None else dtype_of(asked))


def _tri(name: str, args: list[Value], keywords: Keywords) -> Value:
    result = _eye(name, [*args[:2], NONE, *args[3:]], keywords)
    asked = argument(args, keywords, "dtype", 3)
    return evolve(result, dtype="f32") if asked is None and isinstance(result, Array) else result


def _linspace(name: str, args: list[Value], keywords: Keywords) -> Value:
    count, asked = argument(args, keywords, "num", 2) or Const(50), argument(args, keywords, "dtype", 5)
    plain = all(isinstance(value, Const) for value in args[:2]) and len(args) >= 2
    dtype = dtype_of(asked) if asked is not None else "f64" if plain else None
    return Array((dim(count),) if plain else None, dtype)


def _arange(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`arange(stop)`, `arange(start, stop, step)`: the dtype is that of the numbers, and never weak."""
    start, stop = argument(args, keywords, "start", 0), argument(args, keywords, "stop", 1)
    step = argument(args, keywords, "step", 2) or Const(1)
    if stop is None:
        start, stop = Const(0), start
    asked = argument(args, keywords, "dtype", 3)
    if asked is not None:
        dtype = dtype_of(asked)
    else:
        numbers = [value for value in (start, stop, step) if value is not None]
        dtype, _ = promote([("i64", False) if _is_size(value) else operand_dtype(value) for value in numbers])
    return Array((_length(start, stop, step),), dtype)


def _is_size(value: Value) -> bool:
    """Whether a name is surely that of an integer: part of a shape, and not divided."""
    text = value.text.replace("//", "") if isinstance(value, Sym) else ""
    return ".shape[" in text and "/" not in text


def _length(start: Value | None, stop: Value | None, step: Value) -> Dim:
    first, last, by = (value.value if isinstance(value, Const) else None for value in (start, stop, step))
    if isinstance(first, int | float) and isinstance(last, int | float) and isinstance(by, int | float) and by:
        try:
            return max(math.ceil((last - first) / by), 0)
        except (OverflowError, ValueError):
            return None  # infinite, or no number
    if start == Const(0) and step == Const(1) and stop is not None:
        return dim(stop)
    if step == Const(1) and start is not None and stop is not None:
        return dim(arithmetic("-", stop, start))
    return None


def _iota(name: str, args: list[Value], keywords: Keywords) -> Value:
    size = argument(args, keywords, "size", 1)
    return Array((dim(size) if size is not None else None,), dtype_of(argument(args, keywords, "dtype", 0)))


def _broadcasted_iota(name: str, args: list[Value], keywords: Keywords) -> Value:
    dtype = dtype_of(argument(args, keywords, "dtype", 0))
    return Array(shape_argument(argument(args, keywords, "shape", 1)), dtype)


def _array(name: str, args: list[Value], keywords: Keywords) -> Value:
    asked = argument(args, keywords, "dtype", 1)
    first = args[0] if args else keywords.get("object", keywords.get("a"))
    sizes: Shape | None = None
    dtype: str | None = None
    weak = False
    if isinstance(first, Array):
        sizes, (dtype, weak) = first.shape, operand_dtype(first)
    elif isinstance(first, Const):
        sizes, (dtype, weak) = (), operand_dtype(first)
    elif isinstance(first, Seq) and not first.open:
        sizes, parts = _nested_shape(first), list(leaves(first))
        dtype, _ = promote([operand_dtype(part) for part in parts]) if parts else ("f64", False)
    if asked is not None:
        return Array(sizes, dtype_of(asked))
    return Array(sizes, dtype, weak)


def _nested_shape(value: Value) -> Shape | None:
    """The shape of an array made of a list, which may hold lists and arrays."""
    if isinstance(value, Seq):
        inner = _nested_shape(value.items[0]) if value.items else ()
        return None if value.open or inner is None else (len(value.items), *inner)
    return shape(value)


def _astype(name: str, args: list[Value], keywords: Keywords) -> Value:
    wanted = argument(args, keywords, "new_dtype" if "new_dtype" in keywords else "dtype", 1)
    return Array(shape(args[0] if args else keywords.get("x", NONE)), dtype_of(wanted))


def _cast_call(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`jnp.float32(x)`: a cast written as a call."""
    dtype = dtype_of(Const(name.rpartition(".")[2]))
    if args and isinstance(args[0], Seq):
        return Array(_nested_shape(args[0]), dtype)
    return Array(shape(args[0]) if args else (), dtype)


def _bitcast(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`lax.bitcast_convert_type` adds or takes a last axis where widths differ, `view` changes the last axis."""
    source = args[0]
    wanted = canonical(dtype_of(argument(args, keywords, "new_dtype" if "new_dtype" in keywords else "dtype", 1)))
    sizes, (before, _) = shape(source), operand_dtype(source)
    if wanted is None or before is None or sizes is None:
        return Array(None, wanted)
    if bits(before) == bits(wanted):
        return Array(sizes, wanted)
    if bits(before) > bits(wanted) and name.endswith("bitcast_convert_type"):
        return Array((*sizes, bits(before) // bits(wanted)), wanted)
    return Array(None, wanted)


# -- reductions ----------------------------------------------------------------------------------------------------

# Where keepdims stands by position.
_KEEPDIMS = {"sum": 4, "prod": 4, "mean": 4, "var": 5, "std": 5, "logsumexp": 3}
_TO_INEXACT = frozenset("mean var std logsumexp nanmean average median norm".split())


def _reduction(name: str, args: list[Value], keywords: Keywords) -> Value:
    short = name.rpartition(".")[2]
    source = args[0] if args else keywords.get("a", keywords.get("operand", NONE))
    dtype, weak = _reduced_dtype(name, source, args, keywords)
    sizes = shape(source)
    primitive = short.startswith("reduce_") or name.startswith("jax.lax.")
    axis = argument(args, keywords, "axes" if short.startswith("reduce_") else "axis", 2 if short == "norm" else 1)
    keep = argument(args, keywords, "keepdims", 99 if primitive else _KEEPDIMS.get(short, 3)) or Const(False)
    if axis is None and keep == Const(False):
        return Array((), dtype, weak)
    if sizes is None or keep not in (Const(True), Const(False)):
        return Array(None, dtype, weak)
    at = tuple(range(len(sizes))) if axis is None else axes(axis, len(sizes))
    if at is None:
        return Array(unknown_of_rank(sizes) if keep == Const(True) else None, dtype, weak)
    if keep == Const(True):
        return Array(tuple(1 if k in at else size for k, size in enumerate(sizes)), dtype, weak)
    return Array(tuple(size for k, size in enumerate(sizes) if k not in at), dtype, weak)


def _reduced_dtype(name: str, source: Value, args: list[Value], keywords: Keywords) -> tuple[str | None, bool]:
    short = name.rpartition(".")[2]
    dtype, weak = operand_dtype(source)
    if short in ("any", "all", "reduce_and", "reduce_or"):
        return "bool", False
    if short in ("argmax", "argmin", "nanargmax", "nanargmin"):
        asked = argument(args, keywords, "index_dtype", 2 if name.startswith("jax.lax.") else 99)
        return (dtype_of(asked) if asked is not None else "i64"), False
    if short == "count_nonzero":
        return "i64", False
    asked = argument(args, keywords, "dtype", 2 if short in ("sum", "prod", "mean", "var", "std") else 99)
    if asked is not None:
        return dtype_of(asked), False
    if dtype is None:
        return None, False
    if short in _TO_INEXACT:
        return inexact(dtype), weak
    if short in ("sum", "prod", "nansum", "nanprod", "trace") and not is_float(dtype) and dtype[0] != "c":
        return ("u64" if dtype[0] == "u" else "i64"), weak
    return dtype, weak


def _cumulative(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = args[0] if args else keywords.get("a", keywords.get("operand", NONE))
    dtype, weak = operand_dtype(source)
    asked = argument(args, keywords, "dtype", 99 if name.startswith("jax.lax.") else 2)
    if asked is not None:
        dtype, weak = dtype_of(asked), False
    elif dtype == "bool":
        dtype = "i64"
    sizes = shape(source)
    if name.startswith("jax.numpy.") and argument(args, keywords, "axis", 1) is None and sizes is not None:
        sizes = (dim(indexing.product(sizes)),)  # it flattens
    return Array(sizes, dtype, weak)


def _argsort(name: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(shape(args[0]), "i64")


def _diff(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = shape(args[0])
    dtype, weak = operand_dtype(args[0])
    if len(args) > 1 or set(keywords) - {"axis"} or not sizes:
        return Array(unknown_of_rank(sizes), dtype, weak)
    at = axes(keywords.get("axis", Const(-1)), len(sizes))
    if at is None:
        return Array((None,) * len(sizes), dtype, weak)
    one = tuple(dim(arithmetic("-", from_dim(size), Const(1))) if k in at else size for k, size in enumerate(sizes))
    return Array(one, dtype, weak)


def _one_hot(name: str, args: list[Value], keywords: Keywords) -> Value:
    asked = keywords.get("dtype")
    sizes = shape(args[0])
    classes = dim(argument(args, keywords, "num_classes", 1) or NONE)
    at = integer(keywords.get("axis", Const(-1)))
    dtype = "f64" if asked is None else dtype_of(asked)
    return Array((*sizes, classes) if sizes is not None and at == -1 else None, dtype)


_RULES: dict[str, Rule] = dict(RESHAPING)


def _register(rule: Rule, names: str) -> None:
    _RULES.update(dict.fromkeys(names.split(), rule))


_register(
    _elementwise,
    "add subtract sub multiply mul maximum minimum remainder mod rem fmod div bitwise_and"
    " bitwise_or bitwise_xor left_shift right_shift shift_left shift_right_logical shift_right_arithmetic"
    " nextafter bitwise_left_shift bitwise_right_shift gcd lcm fmax fmin",
)
_register(_power, "power pow")
_register(_floor_divide, "floor_divide")
_register(
    _floating,
    "true_divide divide exp exp2 expm1 log log1p log2 log10 sqrt rsqrt cbrt sin cos tan sinh cosh tanh asin acos atan"
    " arcsin arccos arctan arcsinh arccosh arctanh asinh acosh atanh atan2 arctan2 logistic erf erfc"
    " erf_inv erfinv reciprocal hypot float_power copysign heaviside logaddexp logaddexp2 xlogy lgamma digamma"
    " deg2rad rad2deg sinc",
)
_register(
    _activation,
    "sigmoid silu swish gelu softplus softmax log_softmax elu celu selu leaky_relu log_sigmoid mish soft_sign"
    " hard_tanh hard_sigmoid hard_silu hard_swish squareplus logit standardize",
)
_register(_comparison, "equal not_equal less less_equal greater greater_equal eq ne lt le gt ge logical_and logical_or")
_register(_comparison, "logical_xor")
_register(_predicate, "logical_not isnan isinf isfinite is_finite signbit isneginf isposinf iscomplex isreal isclose")
_register(
    _same,
    "negative neg positive abs absolute sign floor ceil round trunc fix square relu stop_gradient around"
    " invert bitwise_not not_ population_count clz roll flip flipud fliplr sort copy conj conjugate tril triu rev"
    " multiple_of max_contiguous integer_pow with_sharding_constraint optimization_barrier nan_to_num real"
    " dynamic_update_slice dynamic_update_slice_in_dim dynamic_update_index_in_dim reduce_precision relu6",
)
_register(_rint, "rint")
_register(_clip, "clip")
_register(_where, "where")
_register(_select_n, "select_n")
_register(_select, "select")
_register(_pair, "divmod")
_register(_like, "zeros_like ones_like full_like empty_like")
_register(_filled, "zeros ones empty full")
_register(_eye, "eye identity")
_register(_tri, "tri")
_register(_linspace, "linspace")
_register(_arange, "arange")
_register(_iota, "iota")
_register(_broadcasted_iota, "broadcasted_iota")
_register(_array, "array asarray")
_register(_astype, "astype convert_element_type")
_register(_bitcast, "bitcast_convert_type view")
_register(
    _cast_call,
    "float32 float16 bfloat16 float64 int8 int16 int32 int64 int4 uint8 uint16 uint32 uint64 uint4 bool_"
    " float8_e4m3fn float8_e5m2",
)
_register(
    _reduction,
    "sum prod max min amax amin mean var std any all argmax argmin nanargmax nanargmin logsumexp nanmax nanmin nansum"
    " nanprod nanmean ptp count_nonzero average median norm reduce_sum reduce_max reduce_min reduce_prod reduce_and"
    " reduce_or",
)
_register(_cumulative, "cumsum cumprod cummax cummin cumlogsumexp")
_register(_argsort, "argsort")
_register(_diff, "diff")
_register(infer_product, PRODUCTS)
_register(infer_einsum, "einsum")
_register(_one_hot, "one_hot")
# lax functions that share a name, but not a meaning, with one of jnp's.
_LAX_RULES: dict[str, Rule] = {
    **dict.fromkeys(RANDOM, _random),
    "jax.lax.max": _elementwise,
    "jax.lax.min": _elementwise,
    "jax.lax.clamp": _clamp,
    "jax.lax.select": _select_n,
}
