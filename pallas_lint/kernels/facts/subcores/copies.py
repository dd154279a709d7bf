"""Copies on a vector subcore of a SparseCore that its lowering or its compiler refuses.

Compiled for v6e and v7x with jax 0.10.2 and 0.12.0.1: every pair of memories, gathers and scatters with indices of
every form, parts of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.chips import LANES
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.copies import LOCAL
from pallas_lint.kernels.facts.divisibility import proven_divisor
from pallas_lint.kernels.facts.memory_spaces import tpu_space
from pallas_lint.kernels.facts.subcores.memory import is_tiled
from pallas_lint.kernels.facts.subcores.mesh import indices_in
from pallas_lint.kernels.library.indexing import is_scalar_index, result_shape
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.values import ELLIPSIS, NONE, Array, CallResult, Const, Ref, Seq, Slice, Value

if TYPE_CHECKING:
    from pallas_lint.compat.chips import SparseCores
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Op
    from pallas_lint.kernels.model.values import Dim

COPIES = (*sorted(LOCAL), f"{PALLAS}.tpu.sync_copy", f"{PALLAS}.sync_copy")
_SPACES = {"hbm": "HBM", "any": "HBM", "vmem": "VMEM", "smem": "SMEM", "vmem_shared": "VMEM_SHARED"}
_FAR = ("HBM", "VMEM_SHARED")
_INDICES = "Indices"  # `plsc.Indices(ref, ignored_value=-1)`
_UNTILED = "take multiples of 128, or `use_tc_tiling_on_sc=False`"
Problem = tuple[str, str]  # what is refused, and what to do


def copy_problem(op: Op, launch: Launch, chips: tuple[SparseCores, ...]) -> Problem | None:
    """What is wrong with a copy on every one of the chips, if anything."""
    source, target = (_end(op, at, name) for at, name in enumerate(("src_ref", "dst_ref")))
    if source is None or target is None:
        return None
    indexed = [(end, indices) for end in (source, target) if (indices := _indices(end)) is not None]
    problems = [_misplaced(source), _misplaced(target), _addition(op, target, bool(indexed), launch)]
    problems += [_pair(source, target, indexed, launch), _unlike(source, target, bool(indexed))]
    problems += [_indexed(end, indices, launch, chips) for end, indices in indexed]
    if indexed and op.argument("sem", 2) == NONE:
        problems.append(("an indirect copy without a semaphore", "pass a `pltpu.SemaphoreType.DMA`"))
    problems += [part(end, launch) for end in (source, target) for part in (_part, _packed_part, _packed_rows)]
    return next(filter(None, problems), None)


def _end(op: Op, at: int, name: str) -> Ref | None:
    value = op.argument(name, at)
    return value if isinstance(value, Ref) else None


def _whole(ref: Ref) -> Ref:
    """The buffer that a view is part of."""
    while ref.view and ref.parent is not None:
        ref = ref.parent
    return ref


def _space(ref: Ref, launch: Launch) -> str | None:
    """ "HBM", "VMEM", "SMEM" or "VMEM_SHARED", where the ref or its buffer is certainly there."""
    return _SPACES.get(tpu_space(_whole(ref), launch) or "")


def _pair(from_: Ref, to: Ref, indexed: list[tuple[Ref, Value]], launch: Launch) -> Problem | None:
    """Memories between which nothing is copied."""
    source, target = _space(from_, launch), _space(to, launch)
    if source is None or target is None:
        return None
    between = f"from {source} to {target}"
    if indexed:
        if not ((source in _FAR and target == "VMEM") or (source == "VMEM" and target in _FAR)):
            return f"rows are gathered {between}", "gather from HBM or VMEM_SHARED into VMEM, and scatter the other way"
        if any((ref is to) is (target == "VMEM") for ref, _ in indexed):
            return (
                "the side in VMEM is indexed by a ref",
                "index the side in HBM or VMEM_SHARED: of a gather the source, of a scatter the destination",
            )
    elif "SMEM" in (source, target) and (source, target) != ("VMEM_SHARED", "SMEM"):
        return (
            f"a vector subcore copies nothing {between}",
            "copy into VMEM and take numbers of a loaded vector: `ref[pl.ds(i, 8)][0]`",
        )
    return None


def _unlike(source: Ref, target: Ref, gathered: bool) -> Problem | None:
    """Ends of different shapes or dtypes."""
    if "semaphore" in (source.dtype, target.dtype):
        return None
    if None not in (source.dtype, target.dtype) and source.dtype != target.dtype:
        return f"a copy of {source.dtype} to {target.dtype}", "copies convert nothing: load, convert and store"
    shapes = [_shape(end, gathered) for end in (source, target)]
    if None in shapes or shapes[0] == shapes[1]:
        return None
    return f"a copy of {shapes[0]} to {shapes[1]}", "take as many rows of both: `ref.at[pl.ds(start, size)]`"


def _shape(view: Ref, gathered: bool) -> tuple[int, ...] | None:
    """The shape of an end of a copy, where it is known in numbers."""
    shape = view.shape
    if gathered and (indices := _indices(view)) is not None:
        rest, taken = view.parent.shape if view.parent is not None else None, _parts(view)
        numbers = indices.shape if isinstance(indices, Ref | Array) else None
        if rest is None or numbers is None or len(taken) > 1:
            return None
        shape = (*numbers, *rest[1:])
    known = tuple(size for size in shape or () if isinstance(size, int))
    return known if shape is not None and len(known) == len(shape) else None


# -- gathers and scatters ------------------------------------------------------------------------------------------


def _indices(view: Ref) -> Value | None:
    """What numbers the rows of an indirect copy, in the first place of the index."""
    first = _parts(view)[:1]
    if not first:
        return None
    value = first[0]
    if isinstance(value, CallResult) and last_part(value.function) == _INDICES:
        value = value.argument("values", 0) or value
    return value if isinstance(value, Ref) or (isinstance(value, Array) and value.shape) else None


def indirect_copy(op: Op) -> bool:
    """Whether the rows of either end are numbered by a vector."""
    ends = [_end(op, at, name) for at, name in enumerate(("src_ref", "dst_ref"))]
    return any(end is not None and _indices(end) is not None for end in ends)


def _misplaced(view: Ref) -> Problem | None:
    """Indices in another place than the first, or a part that is taken of what they take."""
    if any(isinstance(part, Ref) or (isinstance(part, Array) and part.shape) for part in _parts(view)[1:]):
        return (
            "a vector of indices behind the first place: rows alone are gathered",
            "index rows, of a table transposed",
        )
    parent = view.parent
    if view.view and parent is not None and _indices(parent) is not None:
        return "a part of gathered rows", "take the part of the indices: `x_hbm.at[indices.at[pl.ds(0, n)]]`"
    return None


def _addition(op: Op, target: Ref, indexed: bool, launch: Launch) -> Problem | None:
    if op.argument("add") != Const(True):
        return None
    if not indexed:
        return "a copy that adds, without indices of rows", "number the rows: `ref.at[indices]`"
    if _indices(target) is not None and _space(target, launch) == "HBM":
        return "a scatter that adds to HBM", "add to `VMEM_SHARED`, and copy that to HBM"
    return None


def _parts(view: Ref) -> tuple[Value, ...]:
    if not view.view or view.indexer is None:
        return ()
    return view.indexer.items if isinstance(view.indexer, Seq) else (view.indexer,)


def _indexed(view: Ref, indices: Value, launch: Launch, chips: tuple[SparseCores, ...]) -> Problem | None:
    """What is wrong with an indirect copy of rows."""
    name, rows = _whole(view).parameter, view.parent
    dtype = indices.dtype if isinstance(indices, Ref | Array) else None
    if dtype not in (None, "i32", "u32"):
        return f"indices of {dtype}, where an indirect copy takes 32-bit integers", "convert them before the kernel"
    if isinstance(indices, Array) and indices.shape is not None:
        lanes = sorted({chip.lanes for chip in chips})
        if len(indices.shape) == 1 and isinstance(indices.shape[0], int) and indices.shape[0] not in lanes:
            return (
                f"{indices.shape[0]} indices in a vector, of which the register has {' or '.join(map(str, lanes))}",
                "pass the ref in VMEM that they were loaded from: `x_hbm.at[indices_ref]`",
            )
    if isinstance(indices, Ref):
        space = _space(indices, launch)
        if space not in (None, "VMEM"):
            return (
                f"the indices in `{indices.parameter}` lie in {space}: an indirect copy takes them from VMEM",
                "copy them into VMEM before",
            )
        if indices.shape is not None and len(indices.shape) != 1:
            return (
                f"indices of {len(indices.shape)} dimensions in `{indices.parameter}`, where one is taken",
                "copy row by row: `x_hbm.at[indices.at[i]]`",
            )
    if rows is None or rows.shape is None or not is_tiled(launch):
        return None
    if rows.dtype not in (None, "semaphore", "bool") and bits(rows.dtype or "") < 32:
        return (
            f"rows of {rows.dtype} of `{name}` are gathered, of which a SparseCore takes 32-bit numbers only",
            "bitcast them to 32 bits before the kernel, or `use_tc_tiling_on_sc=False`",
        )
    *_, width = rows.shape
    taken = _parts(view)
    if len(taken) == len(rows.shape) and isinstance(taken[-1], Slice):
        width = integer(taken[-1].size) if taken[-1].size is not None else width
    elif len(taken) >= len(rows.shape):
        return None
    if _space(view, launch) == "HBM" and len(rows.shape) > 1 and isinstance(width, int) and width % LANES:
        return f"rows of {width} of `{name}` are gathered, which have to be multiples of {LANES}", _UNTILED
    return None


# -- parts of rows -------------------------------------------------------------------------------------------------


def _part(view: Ref, launch: Launch) -> Problem | None:
    """A part of rows that cuts tiles in two."""
    whole, parts = view.parent, _parts(view)
    if whole is None or whole.view or whole.shape is None or len(whole.shape) < 2 or _space(view, launch) == "SMEM":
        return None
    *_, width = whole.shape
    if len(parts) != len(whole.shape) or not isinstance(width, int) or not is_tiled(launch):
        return None
    last = parts[-1]
    if not isinstance(last, Slice) or last.size is None or result_shape(whole.shape, view.indexer or last) is None:
        return None
    size, start = integer(last.size), integer(last.start)
    if size is None or size >= width or not _is_cut(start, size, width):
        return None
    at = "" if start is None else f" at {start}"
    return (
        f"{size} of {width} numbers of a row{at} of `{view.parameter}`: a copy takes whole tiles of {LANES}",
        _UNTILED,
    )


def _packed_part(view: Ref, launch: Launch) -> Problem | None:
    """A part of a one-dimensional array of 16 or 8 bits that cuts tiles in two.

    Its tiles hold 256 numbers of 16 bits, or 512 of 8. A slice starts at a tile, and takes whole tiles or the rest.
    Compiled for v5p, v6e and v7x with jax 0.12.0.1, and for v6e with 0.10.2: in HBM, VMEM and VMEM_SHARED.
    """
    whole, parts = view.parent, _parts(view)
    if whole is None or whole.view or whole.shape is None or len(whole.shape) != 1 or len(parts) != 1:
        return None
    width, part, dtype = whole.shape[0], parts[0], whole.dtype
    if not isinstance(part, Slice) or part.size is None or not isinstance(width, int) or not is_tiled(launch):
        return None
    if dtype in (None, "bool", "semaphore") or bits(dtype or "") not in (8, 16):
        return None
    if _space(view, launch) in (None, "SMEM"):
        return None
    size, start, tile = integer(part.size), integer(part.start), LANES * 32 // bits(dtype or "")
    if size is None or size >= width or result_shape(whole.shape, part) is None:
        return None
    divisor = _divisor_of_subcores(part.start)
    aligned = start is None or start % tile == 0
    ends = [start] if start is not None else [] if divisor else [width - size]  # a start that moves is not the last one
    is_whole = size % tile == 0 or any(at % tile == 0 and at + size == width for at in ends)
    if aligned and is_whole and not (divisor and divisor % tile):
        return None
    at = f" at {start}" if start is not None else f" at multiples of {divisor}" if divisor else ""
    return (
        f"{size} of {width} numbers of {dtype}{at} of `{whole.parameter}`: a copy takes whole tiles of {tile}",
        f"start at and take multiples of {tile}, or `use_tc_tiling_on_sc=False`",
    )


def _packed_rows(view: Ref, launch: Launch) -> Problem | None:
    """Rows of 16 or 8 bits that share words with rows that are not taken: two rows have one, or four.

    A row by its number is refused whatever the number, a slice where its start or its size cuts a word in two, other
    than at the last row. Compiled for v5p, v6e and v7x with jax 0.12.0.1, in HBM, VMEM and VMEM_SHARED.
    """
    whole, parts = view.parent, _parts(view)
    if whole is None or whole.view or whole.shape is None or len(whole.shape) < 2 or not is_tiled(launch):
        return None
    if whole.dtype in (None, "bool", "semaphore") or bits(whole.dtype or "") not in (8, 16):
        return None
    at = len(whole.shape) - 2
    if _space(view, launch) in (None, "SMEM") or len(parts) <= at or any(part in (NONE, ELLIPSIS) for part in parts):
        return None
    row, packed = parts[at], 32 // bits(whole.dtype or "")
    if is_scalar_index(row):
        taken = "a row"
    elif isinstance(row, Slice) and (size := _cut_words(row, whole.shape[at], packed)) is not None:
        taken = "a row" if size == 1 else f"{size} rows"
    else:
        return None
    return (
        f"a copy of {taken} of {whole.dtype} of `{_whole(view).parameter}`, of which {packed} share a word",
        f"copy `pl.ds({packed} * i, {packed})`, or `use_tc_tiling_on_sc=False`",
    )


def _cut_words(rows: Slice, total: Dim, packed: int) -> int | None:
    """The size of a slice of rows that certainly takes a part of a word; None for others."""
    size = integer(rows.size) if rows.size is not None else None
    if size is None or not isinstance(total, int) or size >= total:
        return None
    start = integer(rows.start)
    divisor = start if start is not None else _divisor_of_subcores(rows.start)
    if divisor is not None and divisor % packed:
        return size
    is_last = size % packed == total % packed if start is None else start + size == total
    return size if size % packed and not is_last else None


def _divisor_of_subcores(start: Value) -> int | None:
    """What is proven to divide a start that is computed on a subcore: nothing divides the subcore's own index."""
    loaded = frozenset(ById(index) for index in indices_in(start))
    return proven_divisor(start, loaded) or None if isinstance(start, Array) else None


def _is_cut(start: int | None, size: int, width: int) -> bool:
    """Whether the slice of a row certainly cuts tiles in two, other than the last one."""
    if size > LANES:
        if start is not None and start % LANES:
            return True
        if start is None:  # it may be the end of the row
            return size % LANES != 0 and (width - size) % LANES != 0
        return size % LANES != 0 and start + size != width
    return start is not None and size < LANES and start % LANES + size > LANES
