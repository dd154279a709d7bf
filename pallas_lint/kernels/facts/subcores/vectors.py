"""Vectors on a vector subcore of a SparseCore: what takes exactly one register, and what goes across its lanes.

Compiled for v6e and v7x with jax 0.10.2 and 0.12.0.1, with layout passes and without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.chips import LANES
from pallas_lint.kernels.facts.divisibility import loaded_values, proven_divisor
from pallas_lint.kernels.facts.memory_spaces import is_copy, tpu_space
from pallas_lint.kernels.library.indexing import is_scalar_index, result_shape
from pallas_lint.kernels.model.compiler_params import compiler_param
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.values import ELLIPSIS, NONE, Array, Const, Ref, Seq, Slice, Value
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pallas_lint.compat.chips import SparseCores
    from pallas_lint.identity import ById
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Access, KernelTrace, Op
    from pallas_lint.kernels.model.values import Shape

_SC = f"{PALLAS}.tpu_sc"
PARAMETER = "needs_layout_passes"
# Reductions, scans and packing, which the layout passes do not take.
WITHOUT_LAYOUT_PASSES = frozenset(
    (
        *(f"jax.numpy.{name}" for name in "sum max min amax amin any all mean ptp count_nonzero cumsum".split()),
        *(f"jax.lax.{name}" for name in "reduce_sum reduce_max reduce_min reduce_and reduce_or cumsum".split()),
        *(f"{_SC}.{name}" for name in "cumsum cummax cummin all_reduce_population_count all_reduce_ffs".split()),
        *(f"{_SC}.{name}" for name in ("pack", "unpack")),
    )
)
# What takes or makes a whole register in either case; by the operand that has its shape, or None for the result.
_MAKING = frozenset(("jax.lax.iota", "jax.lax.broadcasted_iota", "jax.numpy.arange"))
_TAKING = frozenset(("jax.lax.sort", "jax.numpy.sort", "jax.lax.rev", "jax.numpy.flip", f"{_SC}.sort_key_val"))
ONE_REGISTER = _MAKING | _TAKING
JOINING = frozenset(f"jax.{name}" for name in ("numpy.concatenate", "lax.concatenate", "numpy.hstack", "numpy.roll"))


def packed_across_lanes(op: Op) -> bool:
    """Whether the operation goes across the lanes of a vector of 16 or 8 bits, which none does."""
    value = next(iter(op.args), None)
    dtype = value.dtype if isinstance(value, Array) and value.shape else None
    return dtype not in (None, "bool") and bits(dtype or "") < 32 and not op.short.startswith(("pack", "unpack"))


def layout_passes(launch: Launch) -> bool | None:
    """Whether vectors go through the compiler's layout passes, as by default; None where that is not known."""
    given = compiler_param(launch, PARAMETER)
    if given in (None, NONE, Const(True)):
        return True
    return False if given == Const(False) else None


def shape_of_register(op: Op, chips: tuple[SparseCores, ...]) -> str | None:
    """What is wrong with the length of a vector that has to be one register, on every one of the chips."""
    making = op.name in _MAKING
    value = op.result if making else next(iter(op.args), None)
    if not isinstance(value, Array) or not value.shape or not op.is_traced:
        return None
    if len(value.shape) != 1:
        return f"{len(value.shape)} dimensions, where a vector subcore takes the vector of a register"
    (size,) = value.shape
    if making and value.dtype == "f32":
        return "floats: a vector subcore counts in integers"
    if not isinstance(size, int):
        return None
    lanes = sorted({chip.lanes for chip in chips})
    if size in lanes:
        return None
    return f"{size} numbers, where a vector subcore takes the {' or '.join(map(str, lanes))} of a register"


def shapes_loaded(dtype: str | None, shape: Shape | None, chips: tuple[SparseCores, ...]) -> str | None:
    """The shapes of registers, spelled, where none of the chips has one of this shape and dtype; else None."""
    known = (
        dtype is not None and dtype not in ("semaphore", "bool") and shape and all(isinstance(n, int) for n in shape)
    )
    if not known or dtype is None or bits(dtype) not in (8, 16, 32):
        return None
    taken = [each for chip in chips for each in chip.shapes(bits(dtype))]
    return None if shape in taken else " or ".join(map(str, dict.fromkeys(taken)))


def joined_within_a_tile(op: Op) -> bool:
    """Whether the operation certainly joins parts of a vector that is shorter than a tile."""
    shape = op.result.shape if isinstance(op.result, Array) else None
    return bool(shape and len(shape) == 1 and isinstance(shape[0], int) and shape[0] < LANES and op.is_traced)


def taken_behind_a_slice(access: Access) -> bool:
    """Whether a load or store certainly takes one element of a dimension behind several of another: `ref[0:8, 3]`."""
    index, shape = access.index, access.ref.shape
    parts = index.items if isinstance(index, Seq) and index.kind == "tuple" and not index.open else ()
    if shape is None or any(part in (NONE, ELLIPSIS) for part in parts):
        return False
    several = False
    for part, size in zip(parts, shape, strict=False):
        if isinstance(part, Slice):
            taken = result_shape((size,), part)
            several = several or bool(taken and isinstance(taken[0], int) and taken[0] > 1)
        elif several and is_scalar_index(part):
            return True
    return False


@frozen
class UnalignedIndex:
    """An index of a load or store that the layout passes do not take, and what they would."""

    access: Access
    problem: str
    help: str


def unaligned_indices(trace: KernelTrace, chips: tuple[SparseCores, ...]) -> Iterator[UnalignedIndex]:
    """Loads and stores of VMEM in tiles, at an index that moves, which the layout passes refuse on all of the chips."""
    loaded = loaded_values(trace)
    for access in trace.accesses():
        ref = access.ref
        if access.kind == "escape" or ref.view or is_copy(access) or tpu_space(ref, trace.launch) != "vmem":
            continue
        if ref.shape is None or ref.dtype in (None, "bool", "semaphore") or bits(ref.dtype or "") > 32:
            continue
        found = _unaligned(ref, access.index, 32 // bits(ref.dtype or ""), loaded, chips)
        if found is not None:
            yield UnalignedIndex(access, *found)


def _unaligned(
    ref: Ref, index: Value, packed: int, loaded: Collection[ById], chips: tuple[SparseCores, ...]
) -> tuple[str, str] | None:
    parts = index.items if isinstance(index, Seq) and index.kind == "tuple" and not index.open else (index,)
    rank = len(ref.shape or ())
    if any(part in (NONE, ELLIPSIS) for part in parts):
        return None
    lanes = sorted({chip.lanes for chip in chips})
    vector = f"a vector of {' or '.join(map(str, lanes))}"
    if len(parts) == rank:
        last = parts[-1]
        start = last.start if isinstance(last, Slice) else last
        divisor = _divisor_of_moving(start, loaded)
        size = integer(last.size) if isinstance(last, Slice) and last.size is not None else None
        if divisor is not None and (_over_tiles(ref) or (rank == 1 and packed > 1)) and all(divisor % n for n in lanes):
            return f"moves along `{ref.parameter}` in steps of {divisor}", f"go in steps of {vector}"
        cut = size is not None and size not in lanes and size % (LANES * packed) != 0
        if divisor is not None and rank == 1 and packed > 1 and cut:
            what = f"takes {size} numbers of {ref.dtype} of `{ref.parameter}` at an index that moves"
            return what, f"take {vector} at a time, or all {LANES * packed} of a tile"
    row = parts[rank - 2] if rank > 1 and len(parts) >= rank - 1 else None
    first = row.start if isinstance(row, Slice) else row
    divisor = _divisor_of_moving(first, loaded) if first is not None and packed > 1 else None
    if divisor is not None and divisor % packed:
        return (
            f"moves over rows of {ref.dtype} of `{ref.parameter}` one by one, of which {packed} share a word",
            f"take {packed} rows at a time, `pl.ds({packed} * i, {packed})`, or `use_tc_tiling_on_sc=False`",
        )
    return None


def _over_tiles(ref: Ref) -> bool:
    """Whether rows of the ref are longer than a tile: within one, an index moves in any steps."""
    width = ref.shape[-1] if ref.rank and ref.rank > 1 and ref.shape else None
    return isinstance(width, int) and width > LANES


def _divisor_of_moving(start: Value, loaded: Collection[ById]) -> int | None:
    """What is proven to divide an index that is computed while the kernel runs; None for one that is not known."""
    return proven_divisor(start, loaded) or None if isinstance(start, Array) else None


def loaded_shape(value: Value) -> Shape | None:
    """The shape of a value that is loaded or stored; None where it is not known."""
    return value.shape if isinstance(value, Array) else None
