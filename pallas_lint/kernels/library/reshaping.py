"""Shapes of functions that rearrange, join, cut or repeat arrays; the dtype stays."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from pallas_lint.kernels.library import indexing
from pallas_lint.kernels.library.operands import Keywords, argument, axes, shape, shape_argument, unknown_of_rank
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import operand_element, promote
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.values import (
    NONE,
    Array,
    Const,
    Dim,
    Seq,
    Shape,
    Slice,
    Sym,
    Value,
    dim,
    from_dim,
    shape_of,
)


def _of(source: Value, result: Shape | None) -> Array:
    return Array(result, *operand_element(source))


def _source(args: list[Value], keywords: Keywords) -> Value:
    return args[0] if args else next(keywords[name] for name in ("a", "x", "operand", "array", "m") if name in keywords)


def reshape(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = _source(args, keywords)
    wanted = argument(args, keywords, "shape", 1) or keywords.get("new_sizes") or keywords.get("newshape")
    return _of(source, None if wanted is None else indexing.reshaped(shape(source), [wanted]))


def ravel(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = shape(args[0])
    return _of(args[0], (None if sizes is None else dim(indexing.product(sizes)),))


def expand_dims(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = _source(args, keywords)
    sizes = shape(source)
    axis = argument(args, keywords, "dimensions" if "dimensions" in keywords else "axis", 1)
    if sizes is None or axis is None:
        return _of(source, None)
    count = len(axis.items) if isinstance(axis, Seq) else 1
    at = axes(axis, len(sizes) + count)
    if at is None:
        return _of(source, (None,) * (len(sizes) + count) if not isinstance(axis, Seq) or not axis.open else None)
    rest = iter(sizes)
    return _of(source, tuple(1 if k in at else next(rest) for k in range(len(sizes) + count)))


def squeeze(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = _source(args, keywords)
    sizes = shape(source)
    axis = argument(args, keywords, "dimensions" if "dimensions" in keywords else "axis", 1)
    if sizes is None:
        return _of(source, None)
    if axis is None:
        known = all(isinstance(size, int) for size in sizes)
        return _of(source, tuple(size for size in sizes if size != 1) if known else None)
    at = axes(axis, len(sizes))
    return _of(source, None if at is None else tuple(size for k, size in enumerate(sizes) if k not in at))


def transpose(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = _source(args, keywords)
    sizes = shape(source)
    order = argument(args, keywords, "axes", 1) or keywords.get("permutation")
    if sizes is None:
        return _of(source, None)
    at = tuple(reversed(range(len(sizes)))) if order is None else axes(order, len(sizes))
    if at is None or len(at) != len(sizes):
        return _of(source, (None,) * len(sizes))
    return _of(source, tuple(sizes[k] for k in at))


def matrix_transpose(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = shape(args[0])
    if sizes is None or len(sizes) < 2:
        return _of(args[0], None)
    return _of(args[0], (*sizes[:-2], sizes[-1], sizes[-2]))


def swapaxes(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = _source(args, keywords)
    sizes = shape(source)
    first, second = argument(args, keywords, "axis1", 1), argument(args, keywords, "axis2", 2)
    at = None if sizes is None or first is None or second is None else axes(Seq((first, second)), len(sizes))
    if sizes is None or at is None:
        return _of(source, unknown_of_rank(sizes))
    result = list(sizes)
    result[at[0]], result[at[1]] = result[at[1]], result[at[0]]
    return _of(source, tuple(result))


def moveaxis(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = _source(args, keywords)
    sizes = shape(source)
    first, second = argument(args, keywords, "source", 1), argument(args, keywords, "destination", 2)
    if sizes is None or first is None or second is None:
        return _of(source, unknown_of_rank(sizes))
    before, after = axes(first, len(sizes)), axes(second, len(sizes))
    if before is None or after is None or len(before) != len(after):
        return _of(source, (None,) * len(sizes))
    order = [at for at in range(len(sizes)) if at not in before]
    for to, at in sorted(zip(after, before, strict=True)):
        order.insert(to, at)
    return _of(source, tuple(sizes[at] for at in order))


def broadcast_to(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = _source(args, keywords)
    return _of(source, shape_argument(argument(args, keywords, "shape", 1)))


def prefixed(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`lax.broadcast(x, sizes)` puts dimensions in front."""
    sizes, front = shape(args[0]), shape_argument(argument(args, keywords, "sizes", 1))
    return _of(args[0], None if sizes is None or front is None else (*front, *sizes))


def concatenate(name: str, args: list[Value], keywords: Keywords) -> Value:
    short = last_part(name)
    parts = args[0] if args else keywords.get("arrays", keywords.get("operands"))
    if isinstance(parts, Array) and parts.shape:
        return Array(None, parts.element, parts.weak)  # an array is a list of its rows
    if not isinstance(parts, Seq) or parts.open or not parts.items:
        return Array()
    dtype, weak = promote([operand_element(part) for part in parts.items])
    shapes = [shape(part) for part in parts.items]
    first = shapes[0]
    if first is None or any(sizes is None or len(sizes) != len(first) for sizes in shapes):
        return Array(None, dtype, weak)
    axis: Value = argument(args, keywords, "dimension" if "dimension" in keywords else "axis", 1) or Const(0)
    if short in ("hstack", "vstack"):
        if len(first) < 2 and short == "vstack":
            shapes, first = [(1, *(sizes or ())) for sizes in shapes], (1, *first)
        axis = Const(0 if short == "vstack" or len(first) < 2 else 1)
    if short == "stack":
        at = axes(axis, len(first) + 1)
        return Array(None if at is None else (*first[: at[0]], len(shapes), *first[at[0] :]), dtype, weak)
    at = axes(axis, len(first))
    if at is None:
        return Array((None,) * len(first), dtype, weak)
    total: Value = Const(0)
    for sizes in shapes:
        total = arithmetic("+", total, from_dim(sizes[at[0]] if sizes is not None else None))
    return Array((*first[: at[0]], dim(total), *first[at[0] + 1 :]), dtype, weak)


def block(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`jnp.block([[a, b], [c, d]])`: the innermost lists along the last axis, those around along the ones before."""
    return _joined(args[0] if args else keywords.get("arrays", Array()))[0]


def _joined(parts: Value) -> tuple[Value, int]:
    """What lists in lists are joined to, and how deep they are; of several ranks, the shape is not known."""
    if not isinstance(parts, Seq) or parts.open or not parts.items:
        return parts, 0
    inner = [_joined(item) for item in parts.items]
    depth = inner[0][1] + 1
    return concatenate("jax.numpy.concatenate", [Seq(tuple(part for part, _ in inner)), Const(-depth)], {}), depth


def _times(size: Dim, count: Dim) -> Dim:
    return dim(arithmetic("*", from_dim(size), from_dim(count)))


def tile(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes, counts = shape(args[0]), argument(args, keywords, "reps", 1)
    times = None if counts is None or isinstance(counts, Sym) else shape_of(counts)
    if sizes is None or times is None:
        return _of(args[0], None)
    rank = max(len(sizes), len(times))
    padded = ((1,) * (rank - len(sizes)) + sizes, (1,) * (rank - len(times)) + times)
    return _of(args[0], tuple(_times(size, count) for size, count in zip(*padded, strict=True)))


def repeat(name: str, args: list[Value], keywords: Keywords) -> Value:
    source = _source(args, keywords)
    sizes, count = shape(source), argument(args, keywords, "repeats", 1)
    axis = argument(args, keywords, "axis", 2)
    times = dim(count) if count is not None else None
    total = argument(args, keywords, "total_repeat_length", 3)
    if total not in (None, NONE) and sizes is not None:
        at = (0,) if axis is None else axes(axis, len(sizes))
        flat = (None,) if axis is None else sizes
        wanted = dim(total or NONE)
        return _of(source, None if at is None else tuple(wanted if k in at else size for k, size in enumerate(flat)))
    if sizes is None:
        return _of(source, None if axis is not None else (None,))
    if axis is None:
        return _of(source, (_times(dim(indexing.product(sizes)), times),))
    at = axes(axis, len(sizes))
    if at is None:
        return _of(source, (None,) * len(sizes))
    return _of(source, tuple(_times(size, times) if k in at else size for k, size in enumerate(sizes)))


def append(name: str, args: list[Value], keywords: Keywords) -> Value:
    """`append(x, values, axis)`: flat without an axis."""
    axis = argument(args, keywords, "axis", 2)
    parts = args[:2] if axis is not None else [ravel(name, [part], {}) for part in args[:2]]
    return (
        concatenate("jax.numpy.concatenate", [Seq(tuple(parts)), axis or Const(0)], {}) if len(parts) == 2 else Array()
    )


def pad(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = shape(args[0])
    if sizes is None:
        return _of(args[0], None)
    lax = name.startswith("jax.lax.")
    widths = argument(args, keywords, "padding_config" if lax else "pad_width", 2 if lax else 1)
    return _of(args[0], tuple(_padded(size, _width(widths, at)) for at, size in enumerate(sizes)))


def _width(widths: Value | None, at: int) -> int | None:
    """How much is added along one axis; interior padding is not followed."""
    if isinstance(widths, Const):
        count = integer(widths)
        return None if count is None else 2 * count
    if not isinstance(widths, Seq) or widths.open or not widths.items:
        return None
    pair = widths.items[at] if isinstance(widths.items[0], Seq) and at < len(widths.items) else widths
    if isinstance(widths.items[0], Seq) and len(widths.items) == 1:
        pair = widths.items[0]
    if not isinstance(pair, Seq) or len(pair.items) not in (2, 3):
        return None
    numbers = [integer(item) for item in pair.items]
    low, high = numbers[:2]
    return None if low is None or high is None or numbers[2:] not in ([], [0]) else low + high


def _padded(size: Dim, more: int | None) -> Dim:
    if more == 0:
        return size
    return size + more if isinstance(size, int) and more is not None else None


def split(name: str, args: list[Value], keywords: Keywords) -> Value:
    """A list of parts, whose number is the argument."""
    sizes = shape(args[0])
    lax = name == "jax.lax.split"
    wanted = argument(args, keywords, "sizes" if lax else "indices_or_sections", 1)
    axis = argument(args, keywords, "axis", 2) or Const(0)
    at = axes(axis, len(sizes)) if sizes is not None else None
    if sizes is None or at is None or wanted is None:
        return Seq((), "list", open=True)
    whole = sizes[at[0]]
    count = integer(wanted)
    if lax:
        parts = list(shape_argument(wanted) or ())
    elif count is not None and count > 0:
        if isinstance(whole, Sym) and not name.endswith("array_split"):
            parts = [dim(arithmetic("//", whole, Const(count)))] * count  # jax refuses any other
        elif not isinstance(whole, int):
            parts = [None] * count
        else:
            parts = [whole // count + (k < whole % count) for k in range(count)]
    else:
        bounds = [integer(item) for item in wanted.items] if isinstance(wanted, Seq) and not wanted.open else [None]
        if None in bounds or not isinstance(whole, int):
            return Seq((), "list", open=True)
        edges = [0, *(bound for bound in bounds if bound is not None), whole]
        parts = [stop - start for start, stop in itertools.pairwise(edges)]
    if not parts:
        return Seq((), "list", open=True)
    return Seq(tuple(_of(args[0], (*sizes[: at[0]], part, *sizes[at[0] + 1 :])) for part in parts), "list")


def atleast(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = shape(args[0])
    rank = int(name[-2])
    if sizes is None or len(args) != 1:
        return Array() if len(args) == 1 else Seq((), "list", open=True)
    if len(sizes) >= rank or len(sizes) == 0:
        return _of(args[0], sizes or (1,) * rank)
    if rank == 2:
        return _of(args[0], (1, *sizes))
    return _of(args[0], (1, *sizes, 1) if len(sizes) == 1 else (*sizes, 1)) if rank == 3 else _of(args[0], None)


# -- parts of arrays -------------------------------------------------------------------------------------------


def take(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes, indices = shape(args[0]), argument(args, keywords, "indices", 1)
    axis = argument(args, keywords, "axis", 2)
    chosen = shape(indices) if indices is not None and not isinstance(indices, Sym) else None
    if chosen is None:
        return _of(args[0], None)
    if axis is None:
        return _of(args[0], chosen)
    at = axes(axis, len(sizes)) if sizes is not None else None
    return _of(args[0], None if sizes is None or at is None else (*sizes[: at[0]], *chosen, *sizes[at[0] + 1 :]))


def take_along_axis(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes, indices = shape(args[0]), argument(args, keywords, "indices", 1)
    axis = argument(args, keywords, "axis", 2)
    chosen = shape(indices) if indices is not None else None
    if sizes is None or chosen is None or len(sizes) != len(chosen) or axis is None:
        return _of(args[0], None)
    at = axes(axis, len(sizes))
    if at is None:
        return _of(args[0], (None,) * len(sizes))
    merged = (chosen[k] if k in at or chosen[k] == sizes[k] else None for k in range(len(sizes)))
    return _of(args[0], tuple(merged))


def dynamic_slice(name: str, args: list[Value], keywords: Keywords) -> Value:
    return _of(args[0], shape_argument(argument(args, keywords, "slice_sizes", 2)))


def static_slice(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = shape(args[0])
    start, limit = argument(args, keywords, "start_indices", 1), argument(args, keywords, "limit_indices", 2)
    strides = argument(args, keywords, "strides", 3)
    if sizes is None or not isinstance(start, Seq) or not isinstance(limit, Seq):
        return _of(args[0], unknown_of_rank(sizes))
    if strides is not None or len(start.items) != len(sizes) or len(limit.items) != len(sizes):
        return _of(args[0], (None,) * len(sizes))
    pairs = zip(limit.items, start.items, strict=True)
    return _of(args[0], tuple(dim(arithmetic("-", stop, first)) for stop, first in pairs))


def slice_in_dim(name: str, args: list[Value], keywords: Keywords) -> Value:
    """One axis is cut: `slice_in_dim(x, start, limit, stride, axis)`, `dynamic_slice_in_dim(x, start, size, axis)`."""
    sizes = shape(args[0])
    dynamic = name.endswith(("dynamic_slice_in_dim", "dynamic_index_in_dim"))
    axis = argument(args, keywords, "axis", 2 if name.endswith("index_in_dim") else 3 if dynamic else 4) or Const(0)
    at = axes(axis, len(sizes)) if sizes is not None else None
    if sizes is None or at is None:
        return _of(args[0], None)
    before, after = sizes[: at[0]], sizes[at[0] + 1 :]
    if name.endswith("index_in_dim"):
        keep = argument(args, keywords, "keepdims", 3) or Const(True)
        if keep not in (Const(True), Const(False)):
            return _of(args[0], None)
        return _of(args[0], (*before, *((1,) if keep == Const(True) else ()), *after))
    if dynamic:
        size = argument(args, keywords, "slice_size", 2)
        return _of(args[0], (*before, dim(size) if size is not None else None, *after))
    start, limit = argument(args, keywords, "start_index", 1), argument(args, keywords, "limit_index", 2)
    none = Const(None)
    cut = Slice(start or none, limit or none, argument(args, keywords, "stride", 3) or none)
    return _of(args[0], indexing.result_shape(sizes, Seq((*[Slice(none, none, none)] * at[0], cut))))


def top_k(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes, count = shape(args[0]), argument(args, keywords, "k", 1)
    result = None if not sizes or count is None else (*sizes[:-1], dim(count))
    return Seq((_of(args[0], result), Array(result, "i32")), "list")


def diagonal(name: str, args: list[Value], keywords: Keywords) -> Value:
    sizes = shape(args[0])
    if len(args) > 1 or keywords or sizes is None or len(sizes) != 2:
        return _of(args[0], None)
    rows, columns = sizes
    least = min(rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None
    return _of(args[0], (least,))


RESHAPING: dict[str, Callable[[str, list[Value], Keywords], Value]] = {
    "reshape": reshape,
    "ravel": ravel,
    "flatten": ravel,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "transpose": transpose,
    "permute_dims": transpose,
    "matrix_transpose": matrix_transpose,
    "swapaxes": swapaxes,
    "moveaxis": moveaxis,
    "broadcast_to": broadcast_to,
    "broadcast_in_dim": broadcast_to,
    "broadcast": prefixed,
    "concatenate": concatenate,
    "concat": concatenate,
    "stack": concatenate,
    "hstack": concatenate,
    "vstack": concatenate,
    "append": append,
    "block": block,
    "tile": tile,
    "repeat": repeat,
    "pad": pad,
    "split": split,
    "array_split": split,
    "hsplit": lambda name, args, keywords: Seq((), "list", open=True),
    "vsplit": lambda name, args, keywords: Seq((), "list", open=True),
    "atleast_1d": atleast,
    "atleast_2d": atleast,
    "atleast_3d": atleast,
    "take": take,
    "take_along_axis": take_along_axis,
    "dynamic_slice": dynamic_slice,
    "slice": static_slice,
    "slice_in_dim": slice_in_dim,
    "dynamic_slice_in_dim": slice_in_dim,
    "dynamic_index_in_dim": slice_in_dim,
    "index_in_dim": slice_in_dim,
    "gather": lambda name, args, keywords: _of(args[0], None),
    "top_k": top_k,
    "diagonal": diagonal,
    "diag": diagonal,
}
