"""Blocks of arrays that no step of the grid comes to: outputs with parts that are not written, sums that end early, or
take parts of their operands that do not belong together.
"""

from __future__ import annotations

from math import lcm, prod
from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.facts.aliases import aliased_outputs
from pallas_lint.kernels.facts.aliases import pairs as alias_pairs
from pallas_lint.kernels.grid.block_counts import stays_of, walks_of
from pallas_lint.kernels.grid.grid_points import axis_of
from pallas_lint.kernels.grid.index_ranges import number
from pallas_lint.kernels.library.products import PRODUCTS, contracted, operands
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.kernels.model.trace import is_full_index
from pallas_lint.kernels.model.values import ELLIPSIS, Array, Const, Sym, Value, as_tuple
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.grid.block_counts import Walk
    from pallas_lint.kernels.grid.blocks import Block, Blocks
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.result import Effects
    from pallas_lint.kernels.model.trace import Access, KernelTrace, Op

_HELD_WHOLE = ("any", "hbm", "gmem", "semaphore")  # memory spaces whose blocks no step of the grid moves


@frozen
class Unvisited:
    """How many of an array's blocks no step comes to."""

    count: int
    total: int


@frozen
class Tail:
    """The end of a dimension that no step comes to, of a size that the guards let through: 72 rows in blocks of 64."""

    walk: Walk
    size: int


def unwritten(launch: Launch, blocks: Blocks, effects: Effects) -> Iterator[tuple[Block, Unvisited | Walk | Tail]]:
    """The outputs of which blocks are never written: so many, those at the end of a dimension, or all but the first."""
    aliased = aliased_outputs(launch)
    if aliased is None:
        return
    for block in blocks.outputs or ():
        if block is None or block.index in aliased or not _is_moved(block):
            continue
        missing = (
            _unvisited(block)
            or next(_short_walks(block, effects), None)
            or next(_tails(block, effects), None)
            or _at_first_block(block, effects)
        )
        if missing is not None:
            yield block, missing


def _is_moved(block: Block) -> bool:
    """Whether it certainly is the index map that decides which blocks are visited."""
    if block.index_map is None or block.space in _HELD_WHOLE or block.dims is None or block.indices is None:
        return False
    return block.sure and block.index_map.sure and len(block.indices) == len(block.dims)


def _unvisited(block: Block) -> Unvisited | None:
    """The blocks that a grid of known size leaves out."""
    counts = _counts(block)
    if counts is None or block.visits is None:
        return None
    inside = {here for _, here in block.visits if all(map(range.__contains__, map(range, counts), here))}
    total = prod(counts)
    return Unvisited(total - len(inside), total) if len(inside) < total else None


def _counts(block: Block) -> tuple[int, ...] | None:
    """How many blocks there are along each dimension; None where one is not known."""
    counts = []
    for at, dimension in enumerate(block.dims or ()):
        size = block.array_shape[at] if block.array_shape is not None and at < len(block.array_shape) else None
        if dimension.kind not in ("blocked", "squeezed", "whole") or not dimension.size:
            return None
        if not isinstance(size, int) or not isinstance(dimension.size, int):
            return None
        counts.append(-(-size // dimension.size))
    return tuple(counts)


def _short_walks(block: Block, effects: Effects) -> Iterator[Walk]:
    """The dimensions of which the last blocks are left out, whatever the sizes are."""
    for walk in walks_of(block):
        if walk.excess == -1 and (walk.offset or walk.may_be_any(effects)):
            yield walk


def _at_first_block(block: Block, effects: Effects) -> Walk | None:
    """A dimension that the index map leaves at the first of blocks of which the grid has a step for each."""
    stays = (walk for walk in stays_of(block) if not isinstance(walk.blocks, int))
    return next((walk for walk in stays if walk.may_be_any(effects)), None)


def _tails(block: Block, effects: Effects) -> Iterator[Tail]:
    """The dimensions of `n // 64` steps, rounded down, where the code requires multiples of 8."""
    for walk in walks_of(block):
        steps, grid_size = walk.steps, block.grid.sizes[walk.axis]
        if walk.excess != 0 or isinstance(steps, int) or not isinstance(grid_size, Sym):
            continue
        length, rounded_down = number(steps.block), grid_size.operation == ("//", steps.size, steps.block)
        guarded = lcm(*(divisor for size, divisor in effects.multiples if size == steps.size))
        if rounded_down and length and 1 < guarded < length and not length % guarded and walk.may_be_any(effects):
            yield Tail(walk, length + guarded)


def unread(launch: Launch, blocks: Blocks, effects: Effects) -> Iterator[tuple[Block, Walk]]:
    """The inputs whose last blocks are never read, along a grid axis that is summed over or with a quotient of one.

    No output depends on an axis that is summed over. Silent where the rest may come in as another operand.
    """
    for block in _read_inputs(launch, blocks):
        for walk in _short_walks(block, effects):
            summed = _is_summed(walk.axis, blocks)
            divided = walk.divisor > 1 and walk.steps == walk.blocks
            if (summed or divided) and not _comes_twice(block, walk, launch, blocks):
                yield block, walk
                break


def _read_inputs(launch: Launch, blocks: Blocks) -> Iterator[Block]:
    """The inputs that an index map moves, and that no output is aliased to; none where outputs are not moved by one."""
    outputs, pairs = blocks.outputs, alias_pairs(launch)
    if not outputs or pairs is None or any(block is None or not _is_moved(block) for block in outputs):
        return
    aliased = {operand for operand, _ in pairs}
    if None in aliased:
        return
    for block in blocks.inputs or ():
        if block is not None and _is_moved(block) and block.index + (launch.prefetch_count or 0) not in aliased:
            yield block


def _is_summed(axis: int, blocks: Blocks) -> bool:
    """Whether no output depends on a grid axis."""
    return all(output is not None and output.ignores(axis) for output in blocks.outputs or ())


def unmoved(launch: Launch, blocks: Blocks, effects: Effects) -> Iterator[tuple[Block, Walk]]:
    """The inputs that stay at the first block along an axis that has a step for each block.

    The axis is summed over, or all outputs are walked along it in the same dimension. Of sizes that are numbers only
    where another array has the same size along that axis. Silent where the array may be another input, too.
    """
    inputs = [block for block in blocks.inputs or () if block is not None]
    if len(inputs) < len(blocks.inputs or ()):
        return
    for block in _read_inputs(launch, blocks):
        others = [other for other in inputs if other is not block]
        mine, operands = launch.operand(block.index), [launch.operand(other.index) for other in others]
        if mine is None or mine in operands or None in operands:
            continue
        for walk in stays_of(block):
            if not _is_summed(walk.axis, blocks) and not _fills_outputs(walk, blocks):
                continue
            alike = [*others, *filter(None, blocks.outputs or ())]
            if _fill_alike(alike, walk, block) if isinstance(walk.blocks, int) else walk.may_be_any(effects):
                yield block, walk
                break


def _fills_outputs(walk: Walk, blocks: Blocks) -> bool:
    """Whether each output is walked along the axis, in a dimension of as many and as large blocks as the input has."""
    return all(output is not None and _walks_alike(walk, output) for output in blocks.outputs or ())


def _walks_alike(walk: Walk, output: Block) -> bool:
    return any(
        each.axis == walk.axis and each.blocks == walk.blocks and each.divisor == 1 and each.dimension == walk.dimension
        for each in walks_of(output)
    )


def _fill_alike(others: Iterable[Block], walk: Walk, block: Block) -> bool:
    """Whether another input is walked along the same axis, in a dimension of the same size."""
    size = None if block.array_shape is None else block.array_shape[walk.dimension]
    return any(
        other.array_shape is not None and other.array_shape[each.dimension] == size
        for other in others
        for each in walks_of(other)
        if each.axis == walk.axis and each.divisor == 1
    )


def _comes_twice(block: Block, walk: Walk, launch: Launch, blocks: Blocks) -> bool:
    """Whether another input may be the same array and have the blocks that are left out: it does not walk itself."""
    mine = launch.operand(block.index)
    return mine is None or any(
        other is None
        or (
            (other.array_shape == (block.array_shape or ()) or launch.operand(other.index) in (None, mine))
            and all(each.dimension != walk.dimension or each.divisor > 1 for each in walks_of(other))
        )
        for other in blocks.inputs or ()
        if other is not block
    )


# -- sums over the grid -----------------------------------------------------------------------------------------------

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
