"""Blocks of two operands that a product sums over, and the grid axes that walk their dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.grid.grid_points import axis_of
from pallas_lint.kernels.library.products import PRODUCTS, contracted, operands
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.kernels.model.trace import is_full_index
from pallas_lint.kernels.model.values import ELLIPSIS, Array, Const, Value, as_tuple
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.grid.blocks import Block, Blocks
    from pallas_lint.kernels.model.trace import Access, KernelTrace, Op

_SAME = frozenset(("astype", "convert_element_type", "asarray"))  # functions that leave the dimensions as they are
_PRODUCTS = frozenset(PRODUCTS.split())


@frozen
class WalkedDimension:
    """A dimension of a block that the index of one grid axis walks."""

    block: Block
    dimension: int
    axis: int


@frozen
class SplitSum:
    """A product that sums over a dimension of two blocks, walked by different grid axes. No output has `summed`'s."""

    op: Op
    summed: WalkedDimension
    other: WalkedDimension


def split_sums(trace: KernelTrace, blocks: Blocks) -> Iterator[SplitSum]:
    """Products of two whole blocks in which a sum over the grid takes its parts of one operand, and others of the
    other: the axis that walks the one is summed over, since all outputs stay along it, and another walks the other.
    """
    outputs = blocks.outputs
    if not outputs or any(output is None for output in outputs):
        return
    loads = {ById(access.value): access for access in trace.accesses() if access.kind == "load"}
    for op in trace.ops():
        if op.short not in _PRODUCTS or op.open or not op.certain:
            continue
        for left, right in _summed(op, loads, blocks):
            for summed, other in ((left, right), (right, left)):
                if summed.axis == other.axis or summed.block is other.block:
                    continue
                if all(output is not None and output.ignores(summed.axis) for output in outputs):
                    yield SplitSum(op, summed, other)
                    break


def _summed(op: Op, loads: dict[ById, Access], blocks: Blocks) -> Iterator[tuple[WalkedDimension, WalkedDimension]]:
    """The pairs of dimensions that are summed over, both walked by a grid axis."""
    factors = operands(list(op.args), dict(op.keywords))
    if len(factors) != 2:
        return
    left, right = (_dimensions(factor, loads, blocks) for factor in factors)
    if left is None or right is None:
        return
    here, there = tuple(range(len(left[1]))), tuple(range(len(right[1])))  # positions in place of sizes
    for one, other in contracted(op.name, here, there, list(op.args), dict(op.keywords)) or ():
        if isinstance(one, int) and isinstance(other, int):
            first, second = _walked(left[0], left[1][one]), _walked(right[0], right[1][other])
            if first is not None and second is not None:
                yield first, second


def _dimensions(value: Value, loads: dict[ById, Access], blocks: Blocks) -> tuple[Block, list[int]] | None:
    """The block that an operand is, whole but for dimensions of size 1, and which dimensions of it are there."""
    while isinstance(value, Array) and ById(value) not in loads:
        op = value.origin
        if op is None or op.short not in _SAME or not op.args:
            return None
        value = op.args[0]
    access = loads.get(ById(value))
    block = blocks.of(access.ref) if access is not None and access.ref.role == "in" and not access.ref.view else None
    if access is None or block is None or block.dims is None or not block.sure:
        return None
    kept = [at for at, dimension in enumerate(block.dims) if dimension.kind != "squeezed"]
    if is_full_index(access.index):
        return block, kept
    parts = list(as_tuple(access.index))
    if parts and parts[-1] == ELLIPSIS:
        parts.pop()
    if len(parts) > len(kept) or not all(part == Const(0) or is_full_index(part) for part in parts):
        return None
    if ELLIPSIS in parts:
        return None
    return block, [at for at, part in zip(kept, [*parts, *[ELLIPSIS] * len(kept)], strict=False) if part != Const(0)]


def _walked(block: Block, at: int) -> WalkedDimension | None:
    value = block.indices[at] if block.indices is not None and at < len(block.indices) else None
    op = value.origin if isinstance(value, Array) else None
    if op is None or op.name != PROGRAM_ID or block.dims is None or block.dims[at].kind != "blocked":
        return None
    axis = axis_of(op, block.grid.launch)
    return None if axis is None else WalkedDimension(block, at, axis)
