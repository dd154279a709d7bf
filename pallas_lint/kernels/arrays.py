"""Shapes and dtypes of what jnp, lax and jax.nn functions return, as far as their arguments tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels import indexing
from pallas_lint.kernels.dtypes import bits, dtype_of, is_float, operand_dtype, promote
from pallas_lint.kernels.values import (
    NONE,
    Array,
    Const,
    Dim,
    Seq,
    Shape,
    Sym,
    Value,
    dim,
    shape_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["bits", "broadcast", "dtype_of", "infer"]

Keywords = dict[str, Value]


def infer(name: str, args: list[Value], keywords: Keywords) -> Value:
    """What `name(*args, **keywords)` returns; an Array of unknown shape and dtype for what is not modelled."""
    module, _, short = name.rpartition(".")
    rule = _LAX_RULES.get(short) if module == "jax.lax" else None
    rule = rule or _RULES.get(short)
    if rule is None:
        return Array()
    try:
        return rule(short, args, keywords)
    except (IndexError, TypeError, ValueError):
        return Array()  # a call with arguments that the function does not take


def broadcast(shapes: list[Shape | None]) -> Shape | None:
    """The shape that these broadcast to; None where a rank is not known or they do not fit."""
    result: tuple[Dim, ...] = ()
    for shape in shapes:
        if shape is None:
            return None
        longer, shorter = (result, shape) if len(result) >= len(shape) else (shape, result)
        merged = list(longer)
        for offset, size in enumerate(shorter, len(longer) - len(shorter)):
            merged[offset] = _broadcast_dim(longer[offset], size)
        result = tuple(merged)
    return result


def _broadcast_dim(a: Dim, b: Dim) -> Dim:
    if a == 1:
        return b
    if b == 1 or a == b:
        return a
    if isinstance(a, int):
        return a  # the other is unknown, and must be equal or 1
    return b if isinstance(b, int) else None


def _shape(value: Value) -> Shape | None:
    if isinstance(value, Array):
        return value.shape
    return () if isinstance(value, Const | Sym) else None


def _argument(args: list[Value], keywords: Keywords, name: str, position: int) -> Value | None:
    return keywords.get(name, args[position] if position < len(args) else None)


def _elementwise(short: str, args: list[Value], keywords: Keywords) -> Value:
    dtype, weak = promote([operand_dtype(value) for value in args])
    return Array(broadcast([_shape(value) for value in args]), dtype, weak)


def _floating(short: str, args: list[Value], keywords: Keywords) -> Value:
    result = _elementwise(short, args, keywords)
    if isinstance(result, Array) and result.dtype is not None and not is_float(result.dtype) and result.dtype[0] != "c":
        return Array(result.shape, "f32", weak=result.weak)
    return result


def _comparison(short: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(broadcast([_shape(value) for value in args]), "bool")


def _same(short: str, args: list[Value], keywords: Keywords) -> Value:
    first = args[0] if args else keywords.get("x", keywords.get("operand"))
    return Array(first.shape, first.dtype, first.weak) if isinstance(first, Array) else Array()


def _clip(short: str, args: list[Value], keywords: Keywords) -> Value:
    bounds = [keywords[name] for name in ("min", "max", "a_min", "a_max") if name in keywords]
    return _elementwise(short, [value for value in (*args, *bounds) if value != NONE], {})


def _where(short: str, args: list[Value], keywords: Keywords) -> Value:
    if len(args) != 3:
        return Array()
    dtype, weak = promote([operand_dtype(value) for value in args[1:]])
    return Array(broadcast([_shape(value) for value in args]), dtype, weak)


def _select_n(short: str, args: list[Value], keywords: Keywords) -> Value:
    return _same(short, args[1:], keywords)


def _like(short: str, args: list[Value], keywords: Keywords) -> Value:
    from pallas_lint.kernels.values import Ref

    first = args[0]
    shape, dtype = (first.shape, first.dtype) if isinstance(first, Array | Ref) else (None, None)
    asked = _argument(args, keywords, "dtype", 2 if short == "full_like" else 1)
    return Array(shape, dtype_of(asked) if asked not in (None, NONE) else dtype)


def _filled(short: str, args: list[Value], keywords: Keywords) -> Value:
    shape = _argument(args, keywords, "shape", 0)
    asked = _argument(args, keywords, "dtype", 2 if short == "full" else 1)
    dtype: str | None = "f32"
    weak = False
    if asked not in (None, NONE):
        dtype = dtype_of(asked)
    elif short == "full":
        fill = _argument(args, keywords, "fill_value", 1)
        dtype, weak = operand_dtype(fill) if fill is not None else (None, False)
    return Array(_shape_argument(shape), dtype, weak)


def _shape_argument(value: Value | None) -> Shape | None:
    if isinstance(value, Sym):
        return None  # a name for a whole shape, or for one dimension: the text does not tell
    return None if value is None else shape_of(value)


def _arange(short: str, args: list[Value], keywords: Keywords) -> Value:
    asked = keywords.get("dtype")
    dtype = dtype_of(asked) if asked not in (None, NONE) else None
    if dtype is None and asked in (None, NONE):
        kinds = {operand_dtype(value)[0] for value in args}
        dtype = kinds.pop() if len(kinds) == 1 else None
    size = dim(args[0]) if len(args) == 1 else None
    if len(args) == 2 and args[0] == Const(0):
        size = dim(args[1])
    return Array((size,), dtype)


def _iota(short: str, args: list[Value], keywords: Keywords) -> Value:
    dtype = dtype_of(_argument(args, keywords, "dtype", 0))
    return Array((dim(_argument(args, keywords, "size", 1) or Sym("?", 0)),), dtype)


def _broadcasted_iota(short: str, args: list[Value], keywords: Keywords) -> Value:
    dtype = dtype_of(_argument(args, keywords, "dtype", 0))
    return Array(_shape_argument(_argument(args, keywords, "shape", 1)), dtype)


def _array(short: str, args: list[Value], keywords: Keywords) -> Value:
    asked = _argument(args, keywords, "dtype", 1)
    first = args[0]
    if isinstance(first, Array):
        shape, (dtype, weak) = first.shape, operand_dtype(first)
    elif isinstance(first, Const):
        shape, (dtype, weak) = (), operand_dtype(first)
    elif isinstance(first, Seq) and not first.open:
        shape, leaves = _nested_shape(first), list(_leaves(first))
        dtype, weak = promote([operand_dtype(item) for item in leaves])
    else:
        shape, dtype, weak = None, None, False
    if asked not in (None, NONE):
        return Array(shape, dtype_of(asked))
    return Array(shape, dtype, weak and short == "asarray")


def _nested_shape(value: Value) -> Shape | None:
    """The shape of an array made of a list, which may hold lists and arrays."""
    if isinstance(value, Seq):
        inner = _nested_shape(value.items[0]) if value.items else ()
        return None if value.open or inner is None else (len(value.items), *inner)
    if isinstance(value, Const):
        return ()
    return value.shape if isinstance(value, Array) else None


def _leaves(value: Value) -> Iterator[Value]:
    if isinstance(value, Seq):
        for item in value.items:
            yield from _leaves(item)
    else:
        yield value


def _astype(short: str, args: list[Value], keywords: Keywords) -> Value:
    dtype = dtype_of(_argument(args, keywords, "dtype", 1) or _argument(args, keywords, "new_dtype", 1))
    return Array(_shape(args[0]), dtype)


def _cast_call(short: str, args: list[Value], keywords: Keywords) -> Value:
    """`jnp.float32(x)`: a cast written as a call."""
    return Array(_shape(args[0]) if args else (), dtype_of(Const(short)))


def _axes(value: Value | None, rank: int) -> tuple[int, ...] | None:
    """Normalised axes; None where they are not known."""
    items = value.items if isinstance(value, Seq) and not value.open else (value,)
    axes = []
    for item in items:
        if not isinstance(item, Const) or not isinstance(item.value, int):
            return None
        axes.append(item.value % rank if rank else 0)
    return tuple(axes)


def _reduction(short: str, args: list[Value], keywords: Keywords) -> Value:
    dtype, weak = operand_dtype(args[0])
    if short in ("any", "all", "reduce_and", "reduce_or"):
        dtype, weak = "bool", False
    elif short in ("argmax", "argmin"):
        asked = keywords.get("index_dtype")
        dtype, weak = (dtype_of(asked) if asked is not None else "i32"), False
    elif short in ("mean", "var", "std", "logsumexp", "nanmean") and dtype is not None and not is_float(dtype):
        dtype = "f32"
    elif short.startswith("cum"):
        dtype = "i32" if dtype == "bool" and short in ("cumsum", "cumprod") else dtype
    elif short in ("sum", "prod") and dtype in ("bool", "i8", "i16", "u8", "u16"):
        dtype = "i32" if dtype[0] in "bi" else "u32"
    asked = keywords.get("dtype")
    if asked not in (None, NONE) and short != "argmax":
        dtype = dtype_of(asked)
    if short.startswith("cum"):
        return Array(_shape(args[0]), dtype, weak)
    shape = _shape(args[0])
    axis = _argument(args, keywords, "axes" if short.startswith("reduce_") else "axis", 1)
    keep = keywords.get("keepdims", Const(False))
    if axis in (None, NONE) and keep == Const(False):
        return Array((), dtype, weak)
    if shape is None or keep not in (Const(True), Const(False)):
        return Array(None, dtype, weak)
    axes = tuple(range(len(shape))) if axis in (None, NONE) else _axes(axis, len(shape))
    if axes is None:
        return Array(None, dtype, weak)
    if keep == Const(True):
        return Array(tuple(1 if at in axes else size for at, size in enumerate(shape)), dtype, weak)
    return Array(tuple(size for at, size in enumerate(shape) if at not in axes), dtype, weak)


def _reshape(short: str, args: list[Value], keywords: Keywords) -> Value:
    source = args[0]
    wanted = _argument(args, keywords, "shape", 1) or keywords.get("new_sizes") or keywords.get("newshape")
    if wanted is None:
        return Array(None, operand_dtype(source)[0])
    return Array(indexing.reshaped(_shape(source), [wanted]), *operand_dtype(source))


def _ravel(short: str, args: list[Value], keywords: Keywords) -> Value:
    shape = _shape(args[0])
    return Array((None,) if shape is None else (dim(indexing.product(shape)),), *operand_dtype(args[0]))


def _expand_dims(short: str, args: list[Value], keywords: Keywords) -> Value:
    shape = _shape(args[0])
    axis = _argument(args, keywords, "axis" if short == "expand_dims" else "dimensions", 1)
    if shape is None or axis is None:
        return Array(None, *operand_dtype(args[0]))
    count = len(axis.items) if isinstance(axis, Seq) else 1
    axes = _axes(axis, len(shape) + count)
    if axes is None:
        return Array((None,) * (len(shape) + count), *operand_dtype(args[0]))
    rest = iter(shape)
    result = tuple(1 if at in axes else next(rest) for at in range(len(shape) + count))
    return Array(result, *operand_dtype(args[0]))


def _squeeze(short: str, args: list[Value], keywords: Keywords) -> Value:
    shape = _shape(args[0])
    axis = _argument(args, keywords, "axis" if "axis" in keywords else "dimensions", 1)
    if shape is None:
        return Array(None, *operand_dtype(args[0]))
    if axis in (None, NONE):
        known = all(size is not None and not isinstance(size, Sym) for size in shape)
        return Array(tuple(size for size in shape if size != 1) if known else None, *operand_dtype(args[0]))
    axes = _axes(axis, len(shape))
    result = None if axes is None else tuple(size for at, size in enumerate(shape) if at not in axes)
    return Array(result, *operand_dtype(args[0]))


def _transpose(short: str, args: list[Value], keywords: Keywords) -> Value:
    shape = _shape(args[0])
    axes = _argument(args, keywords, "axes" if short != "permute_dims" else "permutation", 1)
    if axes is None:
        axes = keywords.get("permutation")
    if shape is None:
        return Array(None, *operand_dtype(args[0]))
    order = tuple(reversed(range(len(shape)))) if axes in (None, NONE) else _axes(axes, len(shape))
    result = None if order is None or len(order) != len(shape) else tuple(shape[at] for at in order)
    return Array(result, *operand_dtype(args[0]))


def _swapaxes(short: str, args: list[Value], keywords: Keywords) -> Value:
    shape = _shape(args[0])
    first, second = _argument(args, keywords, "axis1", 1), _argument(args, keywords, "axis2", 2)
    axes = None if shape is None else _axes(Seq((first or NONE, second or NONE)), len(shape))
    if shape is None or axes is None:
        return Array(None if shape is None else (None,) * len(shape), *operand_dtype(args[0]))
    result = list(shape)
    result[axes[0]], result[axes[1]] = result[axes[1]], result[axes[0]]
    return Array(tuple(result), *operand_dtype(args[0]))


def _broadcast_to(short: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(_shape_argument(_argument(args, keywords, "shape", 1)), *operand_dtype(args[0]))


def _dot(short: str, args: list[Value], keywords: Keywords) -> Value:
    # By position only lax's forms take it: dot(lhs, rhs, precision, type), dot_general(lhs, rhs, numbers, ...).
    asked = _argument(args, keywords, "preferred_element_type", 3 if short == "dot" else 4)
    operands = [value for value in args if not isinstance(value, Const)]
    if asked not in (None, NONE):
        dtype = dtype_of(asked)
    else:
        dtype, _ = promote([operand_dtype(value) for value in operands[:2]])
    shape: Shape | None = None
    if short in ("dot", "matmul") and len(operands) >= 2 and "dimension_numbers" not in keywords:
        left, right = _shape(operands[0]), _shape(operands[1])
        if left is not None and right is not None and len(left) == len(right) == 2:
            flip_left = keywords.get("trans_a") == Const(True)
            flip_right = keywords.get("trans_b") == Const(True)
            shape = (left[1] if flip_left else left[0], right[0] if flip_right else right[1])
    elif short == "dot_general":
        shape = _dot_general_shape(args, keywords)
    return Array(shape, dtype)


def _dot_general_shape(args: list[Value], keywords: Keywords) -> Shape | None:
    numbers = _argument(args, keywords, "dimension_numbers", 2)
    left, right = _shape(args[0]), _shape(args[1])
    if left is None or right is None or not isinstance(numbers, Seq) or len(numbers.items) != 2:
        return None
    groups: list[tuple[int, ...]] = []
    for pair in numbers.items:
        if not isinstance(pair, Seq) or len(pair.items) != 2:
            return None
        for axes, shape in zip(pair.items, (left, right), strict=True):
            known = _axes(axes, len(shape))
            if known is None:
                return None
            groups.append(known)
    contract_left, contract_right, batch_left, batch_right = groups
    batch = tuple(left[at] for at in batch_left)
    rest_left = tuple(size for at, size in enumerate(left) if at not in (*contract_left, *batch_left))
    rest_right = tuple(size for at, size in enumerate(right) if at not in (*contract_right, *batch_right))
    return (*batch, *rest_left, *rest_right)


def _einsum(short: str, args: list[Value], keywords: Keywords) -> Value:
    asked = keywords.get("preferred_element_type")
    dtype = dtype_of(asked) if asked not in (None, NONE) else promote([operand_dtype(v) for v in args[1:]])[0]
    pattern = args[0].value if isinstance(args[0], Const) and isinstance(args[0].value, str) else ""
    inputs, arrow, output = pattern.replace(" ", "").partition("->")
    if not arrow or "." in pattern:
        return Array(None, dtype)
    sizes: dict[str, Dim] = {}
    for letters, value in zip(inputs.split(","), args[1:], strict=False):
        shape = _shape(value)
        if shape is not None and len(shape) == len(letters):
            sizes.update(zip(letters, shape, strict=True))
    return Array(tuple(sizes.get(letter) for letter in output), dtype)


def _concatenate(short: str, args: list[Value], keywords: Keywords) -> Value:
    parts = args[0]
    if not isinstance(parts, Seq) or parts.open or not parts.items:
        return Array()
    dtype, weak = promote([operand_dtype(part) for part in parts.items])
    axis = _argument(args, keywords, "axis" if "dimension" not in keywords else "dimension", 1) or Const(0)
    shapes = [_shape(part) for part in parts.items]
    first = shapes[0]
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return Array(None, dtype, weak)
    if short == "stack":
        at = _axes(axis, len(first) + 1)
        result = None if at is None else (*first[: at[0]], len(shapes), *first[at[0] :])
        return Array(result, dtype, weak)
    at = _axes(axis, len(first))
    if at is None:
        return Array(None, dtype, weak)
    sizes = [shape[at[0]] for shape in shapes if shape is not None]
    total = sum(size for size in sizes if isinstance(size, int)) if all(isinstance(s, int) for s in sizes) else None
    return Array((*first[: at[0]], total, *first[at[0] + 1 :]), dtype, weak)


def _tile(short: str, args: list[Value], keywords: Keywords) -> Value:
    shape = _shape(args[0])
    return Array(None if shape is None else (None,) * len(shape), *operand_dtype(args[0]))


def _one_hot(short: str, args: list[Value], keywords: Keywords) -> Value:
    asked = keywords.get("dtype")
    shape = _shape(args[0])
    classes = dim(_argument(args, keywords, "num_classes", 1) or NONE)
    return Array(None if shape is None else (*shape, classes), "f32" if asked is None else dtype_of(asked))


def _gather(short: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(None, *operand_dtype(args[0]))


def _clamp(short: str, args: list[Value], keywords: Keywords) -> Value:
    return _same(short, args[1:], keywords)


def _lax_argmax(short: str, args: list[Value], keywords: Keywords) -> Value:
    index = _argument(args, keywords, "index_dtype", 2)
    return _reduction(short, args[:2], {**keywords, "index_dtype": index} if index is not None else keywords)


_RULES: dict[str, Callable[[str, list[Value], Keywords], Value]] = {}


def _register(rule: Callable[[str, list[Value], Keywords], Value], names: str) -> None:
    _RULES.update(dict.fromkeys(names.split(), rule))


_register(
    _elementwise,
    "add subtract sub multiply mul maximum minimum max_ min_ power pow remainder mod rem fmod floor_divide bitwise_and"
    " bitwise_or bitwise_xor left_shift right_shift shift_left shift_right_logical shift_right_arithmetic"
    " logaddexp nextafter copysign heaviside bitwise_left_shift bitwise_right_shift gcd lcm",
)
_register(
    _floating,
    "true_divide divide exp exp2 expm1 log log1p log2 log10 sqrt rsqrt cbrt sin cos tan sinh cosh tanh asin acos atan"
    " arcsin arccos arctan arcsinh arccosh arctanh atan2 arctan2 sigmoid logistic silu swish gelu softplus erf erfc"
    " erf_inv reciprocal hypot float_power softmax log_softmax elu celu selu leaky_relu log_sigmoid mish soft_sign"
    " hard_tanh hard_sigmoid hard_silu relu6 squareplus",
)
_register(
    _comparison,
    "equal not_equal less less_equal greater greater_equal eq ne lt le gt ge logical_and logical_or logical_not"
    " logical_xor isnan isinf isfinite is_finite isclose signbit isneginf isposinf",
)
_register(
    _same,
    "negative neg positive abs absolute fabs sign floor ceil round rint trunc square clamp relu stop_gradient"
    " invert bitwise_not not_ population_count clz roll flip flipud fliplr sort copy conj conjugate tril triu"
    " multiple_of max_contiguous integer_pow with_sharding_constraint optimization_barrier nan_to_num real cumsum_",
)
_register(_clip, "clip")
_register(_where, "where")
_register(_same, "dynamic_update_slice")
_register(_select_n, "select select_n")
_register(_like, "zeros_like ones_like full_like empty_like")
_register(_filled, "zeros ones empty full")
_register(_arange, "arange")
_register(_iota, "iota")
_register(_broadcasted_iota, "broadcasted_iota")
_register(_array, "array asarray")
_register(_astype, "astype convert_element_type")
_register(
    _cast_call,
    "float32 float16 bfloat16 float64 int8 int16 int32 int64 int4 uint8 uint16 uint32 uint64 uint4 bool_"
    " float8_e4m3fn float8_e5m2",
)
_register(
    _reduction,
    "sum prod max min amax amin mean var std any all argmax argmin logsumexp nanmax nanmin nansum nanmean ptp"
    " count_nonzero reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or cumsum cumprod cummax cummin"
    " cumlogsumexp",
)
_register(_reshape, "reshape")
_register(_ravel, "ravel flatten")
_register(_expand_dims, "expand_dims")
_register(_squeeze, "squeeze")
_register(_transpose, "transpose permute_dims matrix_transpose_")
_register(_swapaxes, "swapaxes")
_register(_broadcast_to, "broadcast_to broadcast_in_dim")
_register(_dot, "dot matmul dot_general tensordot inner vdot vecdot batch_matmul")
_register(_einsum, "einsum")
_register(_concatenate, "concatenate concat stack")
_register(_tile, "tile repeat pad")
_register(_one_hot, "one_hot")
_register(
    _gather, "take take_along_axis dynamic_slice dynamic_index_in_dim dynamic_slice_in_dim slice slice_in_dim gather"
)
# lax functions that share a name, but not a meaning, with one of jnp's.
_LAX_RULES: dict[str, Callable[[str, list[Value], Keywords], Value]] = {
    "max": _elementwise,
    "min": _elementwise,
    "clamp": _clamp,
    "argmax": _lax_argmax,
    "argmin": _lax_argmax,
}
