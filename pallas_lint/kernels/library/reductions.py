"""Shapes and dtypes of reductions and of scans along axes: sums, maxima, `argmax`, `cumsum`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.library import indexing
from pallas_lint.kernels.library.operands import Keywords, argument, axes, shape, unknown_of_rank
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import element_of, inexact, operand_element
from pallas_lint.kernels.model.kinds import INEXACT, kinds_of, mapped
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.values import NONE, Array, Const, Seq, Value, dim, from_dim

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.model.kinds import Element

# The position of keepdims.
_KEEPDIMS = {"sum": 4, "prod": 4, "mean": 4, "var": 5, "std": 5, "logsumexp": 3}
_TO_INEXACT = frozenset("mean var std logsumexp nanmean average median norm".split())


def _reduction(name: str, args: list[Value], keywords: Keywords) -> Value:
    short = last_part(name)
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


def _reduced_dtype(name: str, source: Value, args: list[Value], keywords: Keywords) -> tuple[Element, bool]:
    short = last_part(name)
    dtype, weak = operand_element(source)
    if short in ("any", "all", "reduce_and", "reduce_or"):
        return "bool", False
    if short in ("argmax", "argmin", "nanargmax", "nanargmin"):
        requested = argument(args, keywords, "index_dtype", 2 if name.startswith("jax.lax.") else 99)
        return (element_of(requested) if requested is not None else "i64"), False
    if short == "count_nonzero":
        return "i64", False
    requested = argument(args, keywords, "dtype", 2 if short in ("sum", "prod", "mean", "var", "std") else 99)
    if requested is not None:
        return element_of(requested), False
    if short in _TO_INEXACT:
        return inexact(dtype), weak
    if short in ("sum", "prod", "nansum", "nanprod", "trace"):
        if not isinstance(dtype, str):
            return mapped(dtype, bool="int"), False
        if not kinds_of(dtype) & INEXACT:
            return ("u64" if dtype[0] == "u" else "i64"), weak
    return dtype, weak


def _cumulative(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = args[0] if args else keywords.get("a", keywords.get("operand", NONE))
    dtype, weak = operand_element(source)
    requested = argument(args, keywords, "dtype", 99 if name.startswith("jax.lax.") else 2)
    if requested is not None:
        dtype, weak = element_of(requested), False
    elif dtype == "bool":
        dtype = "i64"
    elif not isinstance(dtype, str):
        dtype = mapped(dtype, bool="int")
    sizes = shape(source)
    if name.startswith("jax.numpy.") and argument(args, keywords, "axis", 1) is None and sizes is not None:
        sizes = (dim(indexing.product(sizes)),)  # it flattens
    return Array(sizes, dtype, weak)


def _cumulative_sum(name: str, args: list[Value], keywords: Keywords) -> Value:
    """The array API's: of one dimension without an axis, one more element with `include_initial`."""
    initial = keywords.get("include_initial", Const(False))
    axis, sizes = keywords.get("axis", Const(0)), shape(args[0])
    result = _cumulative("jax.lax.cumsum", args[:1], {key: keywords[key] for key in ("dtype",) if key in keywords})
    at = None if sizes is None else axes(axis, len(sizes))
    if not isinstance(result, Array) or sizes is None or at is None or initial not in (Const(True), Const(False)):
        return Array(None, result.element) if isinstance(result, Array) else Array()
    more = int(initial == Const(True))
    grown = tuple(
        dim(arithmetic("+", from_dim(size), Const(more))) if k in at else size for k, size in enumerate(sizes)
    )
    return Array(grown, result.element, result.weak)


def _places(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`searchsorted(sorted, values)`: an index for each value."""
    values = argument(args, keywords, "v", 1)
    return Array(None if values is None else shape(values), "i32")


def _counted(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`bincount(x, length=n)`; without a length it depends on the numbers."""
    weights = argument(args, keywords, "weights", 1) or NONE
    length = keywords.get("length", NONE)
    return Array((dim(length),), "i64" if weights == NONE else operand_element(weights)[0])


def _histogram(name: str, args: list[Value], keywords: Keywords) -> Value:
    """The counts and the edges of the bins."""
    bins = argument(args, keywords, "bins", 1) or Const(10)
    count = dim(bins)
    return Seq((Array((count,), INEXACT), Array((dim(arithmetic("+", bins, Const(1))),) if count else None, INEXACT)))


def _argsort(name: str, args: list[Value], keywords: Keywords) -> Value:
    return Array(shape(args[0]), "i64")


def _diff(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = shape(args[0])
    dtype, weak = operand_element(args[0])
    if len(args) > 1 or set(keywords) - {"axis"} or not sizes:
        return Array(unknown_of_rank(sizes), dtype, weak)
    at = axes(keywords.get("axis", Const(-1)), len(sizes))
    if at is None:
        return Array((None,) * len(sizes), dtype, weak)
    one = tuple(dim(arithmetic("-", from_dim(size), Const(1))) if k in at else size for k, size in enumerate(sizes))
    return Array(one, dtype, weak)


_NAMES = (
    "sum prod max min amax amin mean var std any all argmax argmin nanargmax nanargmin logsumexp nanmax nanmin nansum"
    " nanprod nanmean ptp count_nonzero average median norm reduce_sum reduce_max reduce_min reduce_prod reduce_and"
    " reduce_or"
)
REDUCTIONS: dict[str, Callable[[str, list[Value], Keywords], Value]] = {
    **dict.fromkeys(_NAMES.split(), _reduction),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _cumulative),
    "cumulative_sum": _cumulative_sum,
    "searchsorted": _places,
    "digitize": lambda name, args, keywords: _places(name, [args[1], args[0]], {}),
    "bincount": _counted,
    "histogram": _histogram,
    **dict.fromkeys(("allclose", "array_equal"), lambda name, args, keywords: Array((), "bool")),
    "argsort": _argsort,
    "diff": _diff,
}
