"""Copies on a vector subcore of a SparseCore that its lowering or its compiler refuses.

Compiled for v6e and v7x with jax 0.10.2 and 0.12.0.1: every pair of memories, gathers and scatters with indices of
every form, parts of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.chips import LANES
from pallas_lint.kernels.facts.copies import LOCAL
from pallas_lint.kernels.facts.memory_spaces import tpu_space
from pallas_lint.kernels.facts.subcores.memory import is_tiled
from pallas_lint.kernels.facts.subcores.tiles import UNTILED, cut_tiles, taken_by
from pallas_lint.kernels.model.called import last_part
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.values import ELLIPSIS, NONE, Array, CallResult, Const, Ref, Slice, Value, as_tuple

if TYPE_CHECKING:
    from pallas_lint.compat.chips import SparseCores
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Op

COPIES = (*sorted(LOCAL), f"{PALLAS}.tpu.sync_copy", f"{PALLAS}.sync_copy")
_SPACES = {"hbm": "HBM", "any": "HBM", "vmem": "VMEM", "smem": "SMEM", "vmem_shared": "VMEM_SHARED"}
_FAR = ("HBM", "VMEM_SHARED")
_INDICES = "Indices"  # `plsc.Indices(ref, ignored_value=-1)`
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
    problems += [_part(end, launch) for end in (source, target)]
    return next(filter(None, problems), None)


def _end(op: Op, at: int, name: str) -> Ref | None:
    value = op.argument(name, at)
    return value if isinstance(value, Ref) else None


def _space(ref: Ref, launch: Launch) -> str | None:
    """ "HBM", "VMEM", "SMEM" or "VMEM_SHARED", where the ref or its buffer is certainly there."""
    return _SPACES.get(tpu_space(ref.root, launch) or "")


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


def _part(view: Ref, launch: Launch) -> Problem | None:
    """A part of an array that cuts tiles in two."""
    whole, parts = view.parent, _parts(view)
    if whole is None or whole.view or whole.shape is None or _space(view, launch) in (None, "SMEM"):
        return None
    if not is_tiled(launch) or len(parts) > len(whole.shape) or any(part in (NONE, ELLIPSIS) for part in parts):
        return None
    taken = [taken_by(part, size) for part, size in zip(parts, whole.shape, strict=False)]
    return cut_tiles(taken + [None] * (len(whole.shape) - len(parts)), whole.dtype, view.root.parameter)


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
    return as_tuple(view.indexer)


def _indexed(view: Ref, indices: Value, launch: Launch, chips: tuple[SparseCores, ...]) -> Problem | None:
    """What is wrong with an indirect copy of rows."""
    name, rows = view.root.parameter, view.parent
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
        return f"rows of {width} of `{name}` are gathered, which have to be multiples of {LANES}", UNTILED
    return None
