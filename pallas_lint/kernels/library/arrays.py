"""Shapes and dtypes of the results of jnp, lax and jax.nn functions, as far as their arguments are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.library import convolutions
from pallas_lint.kernels.library.host import machine, random_arrays
from pallas_lint.kernels.library.operands import Keywords, argument, broadcast, leaves, shape, shape_argument
from pallas_lint.kernels.library.products import PRODUCTS, infer_einsum, infer_product
from pallas_lint.kernels.library.reductions import REDUCTIONS
from pallas_lint.kernels.library.reshaping import RESHAPING
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import (
    bits,
    canonical,
    dtype_of,
    element_of,
    inexact,
    operand_element,
    promote,
)
from pallas_lint.kernels.model.kinds import FLOATING, INEXACT, INTEGER, element_of_kinds, mapped
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.values import NONE, Array, Const, Dim, Ref, Seq, Shape, Sym, Value, dim
from pallas_lint.records import evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.model.kinds import Element

    Rule = Callable[[str, list[Value], Keywords], Value]

__all__ = ["bits", "broadcast", "dtype_of", "element_of", "infer"]


@frozen(eq=False)
class ArrayFunction:
    """A function that does nothing but make arrays of what it is given."""

    infer: Rule
    makes: bool = False  # it always returns an array; for others that depends on the operands
    alike: bool = False  # ... and has the shape of the operand
    # Whether numpy's function of the name returns the same dtype, or one by numpy's own rules.
    numpy: Literal["alike", "promoted"] | None = None


def function_of(name: str) -> ArrayFunction | None:
    return _LAX_FUNCTIONS.get(name) or _FUNCTIONS.get(last_part(name))


def infer(name: str, args: list[Value], keywords: Keywords, x64: bool = False, more: bool = False) -> Value:
    """What `name(*args, **keywords)` returns; an Array of unknown shape and dtype for what is not modelled.

    `more`: there are arguments that are not seen, as in `x.reshape(-1, *sizes)`.
    """
    function = function_of(name)
    if function is None or more:
        return Array()
    try:
        result = function.infer(name, args, keywords)
        if (
            x64
            and function.infer is random_arrays.drawn
            and isinstance(result, Array)
            and result.dtype in ("f64", "i64")
        ):
            # The flag may be set elsewhere in the file only.
            return evolve(result, dtype=element_of_kinds(result.kinds))
        return _canonical(result, x64)
    except (IndexError, StopIteration, TypeError, ValueError):
        return Array()  # a call with arguments that the function does not take


def promotes(name: str) -> bool:
    """Whether a function brings all its arguments to one dtype before it computes; lax casts Python's numbers."""
    return not name.startswith("jax.lax.") and broadcasts(name)


def broadcasts(name: str) -> bool:
    """Whether a function brings all its arguments to one shape before it computes; lax does it with scalars only."""
    function = function_of(name)
    return function is not None and function.infer in _PROMOTING


def _canonical(value: Value, x64: bool) -> Value:
    if isinstance(value, Array):
        element = canonical(value.element, x64)
        return value if element == value.element else evolve(value, dtype=element)
    if isinstance(value, Seq):
        return Seq(tuple(_canonical(item, x64) for item in value.items), value.kind, value.open)
    return value


# -- elementwise ---------------------------------------------------------------------------------------------------


def _operands(args: list[Value], keywords: Keywords) -> list[Value]:
    """Positional operands, or those by name."""
    return args or [value for name, value in keywords.items() if name in ("x", "y", "x1", "x2", "lhs", "rhs", "a")]


def _elementwise(name: str, args: list[Value], keywords: Keywords) -> Value:
    values = _operands(args, keywords)
    decisive = [value for value in values if not name.startswith("jax.lax.") or not isinstance(value, Const)]
    dtype, weak = promote([operand_element(value) for value in decisive or values])  # lax casts Python's numbers
    return Array(broadcast([shape(value) for value in values]), dtype, weak)


def _numeric(name: str, args: list[Value], keywords: Keywords) -> Value:
    """What computes with numbers: booleans count as integers. An integer array to the power of a float is weak."""
    result = _elementwise(name, args, keywords)
    assert isinstance(result, Array)
    element = INTEGER if result.dtype == "bool" else mapped(result.element, bool="int")
    return evolve(result, dtype=element)


def _floor_divide(name: str, args: list[Value], keywords: Keywords) -> Value:
    """Whether an integer array divided by a Python float stays weak hangs on the release of jax."""
    result = _numeric(name, args, keywords)
    assert isinstance(result, Array)
    strong = any(isinstance(value, Array) and not value.weak for value in args)
    return Array(result.shape, FLOATING) if result.weak and strong and result.dtype == "f64" else result


def _floating(name: str, args: list[Value], keywords: Keywords) -> Value:
    result = _elementwise(name, args, keywords)
    assert isinstance(result, Array)
    return evolve(result, dtype=inexact(result.element))


def _activation(name: str, args: list[Value], keywords: Keywords) -> Value:
    """One array in, further arguments are settings: `elu(x, alpha)`, `softmax(x, axis)`."""
    return _floating(name, _operands(args, keywords)[:1], {})


def _with_integer(name: str, args: list[Value], keywords: Keywords) -> Value:
    """What selects among an array and integers."""
    return _elementwise(name, [*_operands(args, keywords)[:1], Const(1)], {})


def _with_float(name: str, args: list[Value], keywords: Keywords) -> Value:
    """What selects among an array and a float."""
    return _elementwise(name, [*_operands(args, keywords)[:1], Const(6.0)], {})


def _comparison(name: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(broadcast([shape(value) for value in _operands(args, keywords)]), "bool")


def _predicate(name: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(shape(_operands(args, keywords)[0]), "bool")


def _same(name: str, args: list[Value], keywords: Keywords) -> Value:
    first = args[0] if args else keywords.get("x", keywords.get("operand", keywords.get("a")))
    if isinstance(first, Const):
        return Array((), *operand_element(first))
    return Array(first.shape, first.element, first.weak) if isinstance(first, Array) else Array()


def _real(name: str, args: list[Value], keywords: Keywords) -> Value:
    """Parts of complex numbers, and their size: floats of half the width, which are not weak."""
    result = _same(name, args, keywords)
    assert isinstance(result, Array)
    element = _HALVES.get(result.dtype or "") or mapped(result.element, complex="float")
    return evolve(result, dtype=element, weak=result.weak and element == result.element)


def _rint(name: str, args: list[Value], keywords: Keywords) -> Value:
    result = _same(name, args, keywords)
    assert isinstance(result, Array)
    return result if result.kinds & INEXACT else Array(result.shape, "f64")


def _clip(name: str, args: list[Value], keywords: Keywords) -> Value:
    bounds = [keywords[key] for key in ("min", "max", "a_min", "a_max") if key in keywords]
    values = [value for value in (*args, *([keywords["arr"]] if "arr" in keywords else []), *bounds) if value != NONE]
    return _elementwise(name, values, {})


def _rest(name: str, args: list[Value], keywords: Keywords) -> Value:
    """The result is like the arguments after the first: `lax.select(which, x, y)`, `lax.clamp(least, x, most)`."""
    return _same(name, args[1:], keywords)


def _where(name: str, args: list[Value], keywords: Keywords) -> Value:
    values = [*args, *(keywords[key] for key in ("x", "y") if key in keywords)]
    if len(values) != 3:
        return Array()
    dtype, weak = promote([operand_element(value) for value in values[1:]])
    return Array(broadcast([shape(value) for value in values]), dtype, weak)


def _select(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`jnp.select(conditions, choices, default)`."""
    conditions, choices, default = args[0], args[1], argument(args, keywords, "default", 2) or Const(0)
    if not isinstance(conditions, Seq) or not isinstance(choices, Seq) or conditions.open or choices.open:
        return Array()
    dtype, weak = promote([operand_element(value) for value in (*choices.items, default)])
    return Array(broadcast([shape(value) for value in (*conditions.items, *choices.items, default)]), dtype, weak)


def _pair(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`divmod`: two of what one of its halves is; `modf` and `frexp` are of other kinds."""
    result = _numeric(name, args, keywords)
    return Seq((result, result))


# -- casts and constructors ----------------------------------------------------------------------------------------


def _like(name: str, args: list[Value], keywords: Keywords) -> Value:
    first = args[0]
    full = name.endswith("full_like")
    sizes, like = (first.shape, first.element) if isinstance(first, Array | Ref) else (shape(first), None)
    requested = argument(args, keywords, "dtype", 2 if full else 1)
    given_shape = argument(args, keywords, "shape", 3 if full else 2)
    return Array(
        shape_argument(given_shape) if given_shape is not None else sizes,
        element_of(requested) if requested is not None else like,
    )


def _filled(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = argument(args, keywords, "shape", 0)
    full = name.endswith("full")
    requested = argument(args, keywords, "dtype", 2 if full else 1)
    if requested is not None:
        return Array(shape_argument(sizes), element_of(requested))
    if not full:
        return Array(shape_argument(sizes), "f64")
    fill = argument(args, keywords, "fill_value", 1)
    return Array(shape_argument(sizes), *(operand_element(fill) if fill is not None else (None, False)))


def _axis_index(name: str, args: list[Value], keywords: Keywords) -> Value:
    return Array((), "i32")


def _eye(name: str, args: list[Value], keywords: Keywords) -> Value:
    rows = argument(args, keywords, "n" if "n" in keywords else "N", 0)
    columns = None if name.endswith("identity") else argument(args, keywords, "M", 1)
    requested = argument(args, keywords, "dtype", 1 if name.endswith("identity") else 3)
    size = dim(rows) if rows is not None else None
    return Array(
        (size, dim(columns) if columns is not None else size), "f64" if requested is None else element_of(requested)
    )


def _tri(name: str, args: list[Value], keywords: Keywords) -> Value:
    result = _eye(name, [*args[:2], NONE, *args[3:]], keywords)
    requested = argument(args, keywords, "dtype", 3)
    return evolve(result, dtype="f32") if requested is None and isinstance(result, Array) else result


def _linspace(name: str, args: list[Value], keywords: Keywords) -> Value:
    count, requested = argument(args, keywords, "num", 2) or Const(50), argument(args, keywords, "dtype", 5)
    plain = all(isinstance(value, Const) for value in args[:2]) and len(args) >= 2
    dtype = element_of(requested) if requested is not None else "f64" if plain else INEXACT
    return Array((dim(count),) if plain else None, dtype)


def _arange(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`arange(stop)`, `arange(start, stop, step)`: the dtype is that of the numbers, and never weak."""
    start, stop = argument(args, keywords, "start", 0), argument(args, keywords, "stop", 1)
    step = argument(args, keywords, "step", 2) or Const(1)
    if stop is None:
        start, stop = Const(0), start
    requested = argument(args, keywords, "dtype", 3)
    if requested is not None:
        dtype = element_of(requested)
    else:
        numbers = [value for value in (start, stop, step) if value is not None]
        dtype, _ = promote([("i64", False) if _is_size(value) else operand_element(value) for value in numbers])
    return Array((_length(start, stop, step),), dtype)


def _is_size(value: Value) -> bool:
    """Whether a name is certainly that of an integer: part of a shape, and not divided."""
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
    return Array((dim(size) if size is not None else None,), element_of(argument(args, keywords, "dtype", 0)))


def _broadcasted_iota(name: str, args: list[Value], keywords: Keywords) -> Value:
    dtype = element_of(argument(args, keywords, "dtype", 0))
    return Array(shape_argument(argument(args, keywords, "shape", 1)), dtype)


def _array(name: str, args: list[Value], keywords: Keywords) -> Value:
    requested = argument(args, keywords, "dtype", 1)
    first = args[0] if args else keywords.get("object", keywords.get("a"))
    sizes: Shape | None = None
    dtype: Element = None
    weak = False
    if isinstance(first, Array):
        sizes, (dtype, weak) = first.shape, operand_element(first)
    elif isinstance(first, Const):
        sizes, (dtype, weak) = (), operand_element(first)
    elif isinstance(first, Seq) and not first.open:
        sizes, parts = _nested_shape(first), list(leaves(first))
        dtype, _ = promote([operand_element(part) for part in parts]) if parts else ("f64", False)
    if requested is not None:
        return Array(sizes, element_of(requested))
    return Array(sizes, dtype, weak)


def _nested_shape(value: Value) -> Shape | None:
    """The shape of an array made of a list, which may hold lists and arrays."""
    if isinstance(value, Seq):
        inner = _nested_shape(value.items[0]) if value.items else ()
        return None if value.open or inner is None else (len(value.items), *inner)
    return () if machine.is_device(value) else shape(value)


def _astype(name: str, args: list[Value], keywords: Keywords) -> Value:
    wanted = argument(args, keywords, "new_dtype" if "new_dtype" in keywords else "dtype", 1)
    return Array(shape(args[0] if args else keywords.get("x", NONE)), element_of(wanted))


def _cast_call(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`jnp.float32(x)`: a cast written as a call."""
    dtype = dtype_of(Const(last_part(name)))
    if args and isinstance(args[0], Seq):
        return Array(_nested_shape(args[0]), dtype)
    return Array(shape(args[0]) if args else (), dtype)


def _bitcast(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`lax.bitcast_convert_type` adds or takes a last axis where widths differ, `view` changes the last axis."""
    source = args[0]
    wanted = canonical(element_of(argument(args, keywords, "new_dtype" if "new_dtype" in keywords else "dtype", 1)))
    sizes, (before, _) = shape(source), operand_element(source)
    if not isinstance(wanted, str) or not isinstance(before, str) or sizes is None:
        return Array(None, wanted)
    if bits(before) == bits(wanted):
        return Array(sizes, wanted)
    if not name.endswith("bitcast_convert_type"):
        return Array(None, wanted)
    return Array((*sizes, bits(before) // bits(wanted)) if bits(before) > bits(wanted) else sizes[:-1], wanted)


def _one_hot(name: str, args: list[Value], keywords: Keywords) -> Value:
    requested = keywords.get("dtype")
    sizes = shape(args[0])
    classes = dim(argument(args, keywords, "num_classes", 1) or NONE)
    at = integer(keywords.get("axis", Const(-1)))
    dtype = "f64" if requested is None else element_of(requested)
    return Array((*sizes, classes) if sizes is not None and at == -1 else None, dtype)


def _opaque(name: str, args: list[Value], keywords: Keywords) -> Value:
    return Array()


# By the last part of the name, which those of jnp and lax share.
_FUNCTIONS: dict[str, ArrayFunction] = {}


def _register(rule: Rule, names: str, *, makes: bool = False, alike: bool = False) -> None:
    _FUNCTIONS.update(dict.fromkeys(names.split(), ArrayFunction(rule, makes, alike)))


def _register_numpy(how: Literal["alike", "promoted"], names: str) -> None:
    _FUNCTIONS.update({name: evolve(_FUNCTIONS[name], numpy=how) for name in names.split()})


for _name, _rule in (*RESHAPING.items(), *REDUCTIONS.items()):
    _register(_rule, _name)
_register(RESHAPING["split"], "split", makes=True)
_register(RESHAPING["block"], "block", makes=True)
_register(
    _elementwise,
    "add subtract sub multiply mul maximum minimum rem div bitwise_and"
    " bitwise_or bitwise_xor left_shift right_shift shift_left shift_right_logical shift_right_arithmetic"
    " nextafter bitwise_left_shift bitwise_right_shift gcd lcm fmax fmin",
)
_register(_numeric, "power pow remainder mod fmod")
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
    " hard_sigmoid hard_silu hard_swish squareplus logit standardize",
)
_register(_with_integer, "hard_tanh relu")
_register(_with_float, "relu6")
_register(_comparison, "equal not_equal less less_equal greater greater_equal eq ne lt le gt ge logical_and logical_or")
_register(_comparison, "logical_xor")
_register(_predicate, "logical_not isnan isinf isfinite is_finite signbit isneginf isposinf iscomplex isreal isclose")
_register(
    _same,
    "negative neg positive sign floor ceil round trunc fix square stop_gradient around"
    " invert bitwise_not not_ population_count clz roll flip flipud fliplr sort copy conj conjugate rev"
    " multiple_of max_contiguous integer_pow with_sharding_constraint optimization_barrier nan_to_num"
    " dynamic_update_slice dynamic_update_slice_in_dim dynamic_update_index_in_dim reduce_precision",
)
_register(_same, "tril triu", makes=True)
_register(_real, "real imag abs absolute")
_register(_rint, "rint")
_register(_clip, "clip")
_register(_where, "where")
_register(_rest, "select_n")
_register(_select, "select")
_register(_pair, "divmod")
_register(_like, "zeros_like ones_like full_like empty_like", makes=True, alike=True)
_register(_filled, "zeros ones empty full", makes=True)
_register(_axis_index, "axis_index", makes=True)
_register(_eye, "eye identity", makes=True)
_register(_tri, "tri", makes=True)
_register(_linspace, "linspace", makes=True)
_register(_arange, "arange", makes=True)
_register(_iota, "iota", makes=True)
_register(_broadcasted_iota, "broadcasted_iota", makes=True)
_register(_array, "array asarray", makes=True, alike=True)
_register(_opaque, "normal uniform randint bits", makes=True)
_register(_astype, "astype convert_element_type")
_register(_bitcast, "bitcast_convert_type view")
_register(
    _cast_call,
    "float32 float16 bfloat16 float64 int8 int16 int32 int64 int4 uint8 uint16 uint32 uint64 uint4 bool_"
    " float8_e4m3fn float8_e5m2",
)
_register(infer_product, PRODUCTS)
_register(infer_einsum, "einsum")
_register(_one_hot, "one_hot")
_register_numpy(
    "alike",
    "array asarray arange zeros ones full empty eye linspace zeros_like ones_like full_like empty_like broadcast_to"
    " tile repeat reshape expand_dims",
)
_register_numpy(
    "promoted",
    "concatenate stack vstack hstack flip roll sort argsort where sum prod max min amax amin mean var std any all"
    " argmax argmin ptp count_nonzero cumsum cumprod diff abs absolute negative square floor ceil round clip maximum"
    " minimum add subtract multiply divide true_divide floor_divide mod remainder equal not_equal less less_equal"
    " greater greater_equal logical_and logical_or logical_not isnan isfinite isinf transpose swapaxes moveaxis squeeze"
    " ravel split array_split pad take take_along_axis tril triu outer dot matmul einsum copy fliplr flipud",
)
_HALVES = {"c64": "f32", "c128": "f64"}  # the dtype of the parts
_PROMOTING = (_elementwise, _numeric, _floor_divide, _floating, _comparison, _clip, _pair)
# Functions that share a name, but not a meaning, with one of jnp's.
_LAX_FUNCTIONS = {
    **{name: ArrayFunction(rule, makes=True) for name, rule in random_arrays.RULES.items()},
    **{name: ArrayFunction(rule) for name, rule in convolutions.RULES.items()},
    "jax.lax.max": ArrayFunction(_elementwise),
    "jax.lax.min": ArrayFunction(_elementwise),
    "jax.lax.clamp": ArrayFunction(_rest),
    "jax.lax.select": ArrayFunction(_rest),
}
