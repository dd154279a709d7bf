"""Tiles of arrays in memories of a SparseCore, which its copies take whole.

Compiled for v6e with jax 0.12.0.1: slices at constants and at multiples of the index of a subcore, rows and words of
32, 16 and 8 bits, in HBM, VMEM and VMEM_SHARED, and the same as blocks of `emit_pipeline`; most slices of HBM also for
v5p and v7x, and with jax 0.10.2 and 0.11.2. Equal halves of two tiles are refused for v5p by 0.10.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.chips import LANES
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.divisibility import proven_divisor
from pallas_lint.kernels.facts.named_axes import indices_in
from pallas_lint.kernels.library.indexing import is_scalar_index, result_shape
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import Array, Slice, Value
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.values import Dim

UNTILED = "take multiples of 128, or `use_tc_tiling_on_sc=False`"
Problem = tuple[str, str]  # what is refused, and what to do


@frozen
class Taken:
    """What a copy takes of one dimension: from `start`, or from multiples of `divisor` where the start moves."""

    size: int
    of: int
    start: int | None
    divisor: int | None = None
    squeezed: bool = False

    @property
    def at(self) -> str:
        if self.start is not None:
            return f" at {self.start}"
        return f" at multiples of {self.divisor}" if self.divisor else ""

    def cuts(self, tile: int) -> bool:
        """Whether it certainly takes a part of a tile, other than the last one of the array."""
        if self.size >= self.of or (self.divisor or self.start or 0) % tile:
            return self.size < self.of
        # A start that is not known may be that of the end; one that moves is not.
        at_end = self.start is not None and self.start + self.size == self.of
        may_end = self.start is None and not self.divisor and (self.of - self.size) % tile == 0
        return self.size % tile != 0 and not at_end and not may_end


def taken_by(part: Value, of: Dim) -> Taken | None:
    """What an index takes of a dimension; None where that is not known, or all of it."""
    if not isinstance(of, int):
        return None
    if is_scalar_index(part):
        return Taken(1, of, integer(part), _divisor(part), squeezed=True)
    if not isinstance(part, Slice) or part.size is None or result_shape((of,), part) is None:
        return None
    size = integer(part.size)
    return None if size is None else Taken(size, of, integer(part.start), _divisor(part.start))


def _divisor(start: Value) -> int | None:
    """What is proven to divide a start that is computed: nothing divides the index of a subcore."""
    unknown = frozenset(ById(index) for index in indices_in(start))
    return proven_divisor(start, unknown) or None if isinstance(start, Array) else None


def cut_block(block: Block) -> Problem | None:
    """What is wrong with the blocks that a pipeline copies."""
    dims, indices, shape = block.dims, block.indices, block.array_shape
    if dims is None or indices is None or shape is None or not len(dims) == len(indices) == len(shape):
        return None
    taken: list[Taken | None] = []
    for dim, index, of in zip(dims, indices, shape, strict=True):
        if not isinstance(dim.size, int) or not isinstance(of, int) or dim.kind not in ("blocked", "squeezed"):
            taken.append(None)
            continue
        at, divisor = integer(index), _divisor(index)
        start = at * dim.size if at is not None else None
        taken.append(Taken(dim.size, of, start, divisor and divisor * dim.size, dim.kind == "squeezed"))
    return cut_tiles(taken, block.dtype, f"{block.role}put {block.index}")


def cut_tiles(taken: list[Taken | None], dtype: str | None, name: str) -> Problem | None:
    """What is wrong with a part of an array, by what is taken of each dimension."""
    known = dtype not in (None, "bool", "semaphore")
    packed = 32 // bits(dtype or "") if known and bits(dtype or "") in (8, 16) else 1
    last = taken[-1] if taken else None
    if len(taken) == 1:
        return _packed_vector(last, dtype, packed, name) if last is not None and packed > 1 else None
    rows = taken[-2] if len(taken) > 1 else None
    if rows is not None and packed > 1 and (rows.squeezed or rows.cuts(packed)):
        what = "a row" if rows.size == 1 else f"{rows.size} rows"
        return (
            f"a copy of {what} of {dtype} of `{name}`, of which {packed} share a word",
            f"copy `pl.ds({packed} * i, {packed})`, or `use_tc_tiling_on_sc=False`",
        )
    if last is None or last.squeezed or not _cuts_row(last):
        return None
    return (
        f"{last.size} of {last.of} numbers of a row{last.at} of `{name}`: a copy takes whole tiles of {LANES}",
        UNTILED,
    )


def _packed_vector(taken: Taken, dtype: str | None, packed: int, name: str) -> Problem | None:
    """Tiles of an array of one dimension hold 256 numbers of 16 bits, or 512 of 8."""
    tile = LANES * packed
    if taken.squeezed or not taken.cuts(tile):
        return None
    return (
        f"{taken.size} of {taken.of} numbers of {dtype}{taken.at} of `{name}`: a copy takes whole tiles of {tile}",
        f"start at and take multiples of {tile}, or `use_tc_tiling_on_sc=False`",
    )


def _cuts_row(taken: Taken) -> bool:
    """Whether a part of a row cuts tiles in two.

    A part of at most a tile lies in one, provably where its start moves, or at a constant also in equal halves of two.
    """
    size, half = taken.size, taken.size // 2
    if size >= taken.of or taken.of <= LANES:
        return False
    if size > LANES:
        return taken.cuts(LANES)
    if taken.start is None:
        return bool(taken.divisor and (LANES % size or taken.divisor % size))
    in_halves = size == 2 * half and LANES % half == 0 and taken.start % half == 0
    return taken.start % LANES + size > LANES and not in_halves
