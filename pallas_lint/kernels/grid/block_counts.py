"""Numbers of blocks and of grid steps, of sizes that may have only names: `n // 128` steps along `n // 256` blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.grid.grid_points import axis_of, terms_in
from pallas_lint.kernels.grid.index_ranges import divided, number, summed
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.kernels.model.symbols import default_of
from pallas_lint.kernels.model.trace import KernelTrace
from pallas_lint.kernels.model.values import UNKNOWN, Array, Choice, Const, Sym, SymbolOwner, Value
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.result import Effects
    from pallas_lint.kernels.model.values import Dim


_QUOTIENTS = frozenset(("jax.numpy.floor_divide", "jax.lax.div"))


@frozen
class BlockCount:
    """How often blocks of `block` elements fit into `size` elements, rounded up or down."""

    size: Sym
    block: Sym | Const

    def __str__(self) -> str:
        """ "x.shape[0] // 128"."""
        if self.block == Const(1):
            return self.size.text
        return f"{self.size.text} // {self.block.text if isinstance(self.block, Sym) else self.block.value}"


@frozen
class Walk:
    """A dimension of a block that one grid axis moves, block by block from the first one on."""

    dimension: int
    axis: int
    steps: BlockCount | int  # of the grid axis
    blocks: BlockCount | int  # of the dimension
    divisor: int = 1  # the steps in a row that stay at one block: 4 where the index map returns `head // 4`

    @property
    def excess(self) -> int | None:
        """Whether it reaches more blocks than there are (1), all (0) or fewer (-1), for every size but small ones.

        Blocks of different names have their defaults. None where that is not known.
        """
        if isinstance(self.steps, int) and isinstance(self.blocks, int):
            return _sign(-(-self.steps // self.divisor) - self.blocks)
        if self.offset:
            return _sign(self.offset) if self.divisor == 1 else None
        if isinstance(self.steps, int) or isinstance(self.blocks, int) or self.steps.size != self.blocks.size:
            return None
        if self.steps.block == self.blocks.block:
            return 0 if self.divisor == 1 else -1
        # What is common to both does not matter: `m // (2 * bm)` steps along `m // bm` blocks.
        step, one = factored(self.steps.block)
        block, other = factored(self.blocks.block)
        if one == other:
            return _sign(block - step * self.divisor)
        default, its = default_of(self.steps.block), default_of(self.blocks.block)
        return None if default is None or its is None else _sign(its - default * self.divisor)

    @property
    def offset(self) -> int:
        """How many more steps there are than blocks where the grid is made of their number: -1 of `n // b - 1`."""
        if isinstance(self.steps, int) or self.steps.block != Const(1):
            return 0
        symbol, count, more = self.steps.size.operation or ("", UNKNOWN, UNKNOWN)
        times = number(more) if symbol in ("+", "-") else None
        if times is None or not isinstance(count, Sym) or block_count(count) != self.blocks:
            return 0
        return times if symbol == "+" else -times

    @property
    def spelled_steps(self) -> str:
        """ "n // 128 steps", and how many of them stay at one block."""
        return f"{self.steps} steps" + (f", {self.divisor} a block" if self.divisor > 1 else "")

    def may_be_any(self, effects: Effects) -> bool:
        """Whether the code compares none of the sizes with something that may make the two counts equal."""
        counts = [count for count in (self.steps, self.blocks) if isinstance(count, BlockCount)]
        # A block may be what a branch chooses: the counts are of the same one.
        named = (symbol for count in counts for symbol in terms_in(count.block).symbols if not symbol.is_chosen)
        return may_be_any(effects, *(count.size for count in counts), *named)

    def counts_may_differ(self, effects: Effects) -> bool:
        """Whether the code compares neither of two sizes with the other, directly or by others, nor with a number."""
        if isinstance(self.steps, int) or isinstance(self.blocks, int) or self.steps.size == self.blocks.size:
            return self.may_be_any(effects)
        sizes = self.steps.size, self.blocks.size
        limited = any(None in group and not group.isdisjoint(sizes) for group in effects.comparisons)
        return not limited and may_differ(effects, *sizes)


def factored(size: Sym | Const) -> tuple[int, Value]:
    """The number that a size is multiplied by, and the rest: (2, bm) of `2 * bm`, (256, 1) of 256."""
    value = number(size)
    if value is not None:
        return value, Const(1)
    if isinstance(size, Sym) and size.operation is not None and size.operation[0] == "*":
        for factor, rest in (size.operation[1:], size.operation[:0:-1]):
            if (times := number(factor)) is not None and times > 0:
                return times, rest
    return 1, size


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def walks_of(block: Block) -> list[Walk]:
    """The dimensions along which the index map returns the index of a grid axis, or a quotient of it.

    Only those of which both counts are known.
    """
    launch = block.grid.launch
    found = []
    for at, value in enumerate(block.indices or ()):
        moved = _axis(value, launch)
        if moved is None or moved[0] >= block.grid.rank:
            continue
        axis, divisor = moved
        steps, blocks = block_count(block.grid.sizes[axis]), _blocks(block, at)
        if steps is not None and blocks is not None:
            found.append(Walk(at, axis, steps, blocks, divisor))
    return found


@frozen
class Neighbour:
    """A dimension of a block that is `offset` blocks beyond a grid axis, which has as many steps as it has blocks."""

    dimension: int
    axis: int
    offset: int
    blocks: BlockCount


def neighbours_of(block: Block) -> list[Neighbour]:
    """The dimensions whose last blocks are past the end, whatever the size, as long as blocks divide it: `i + 1`."""
    found = []
    for at, value in enumerate(block.indices or ()):
        index, offset = summed(value)
        moved = _axis(index, block.grid.launch) if offset > 0 else None
        if moved is None or moved[0] >= block.grid.rank or moved[1] != 1:
            continue
        blocks = _blocks(block, at)
        if isinstance(blocks, BlockCount) and blocks == block_count(block.grid.sizes[moved[0]]):
            found.append(Neighbour(at, moved[0], offset, blocks))
    return found


def stays_of(block: Block) -> list[Walk]:
    """The dimensions that the index map leaves at the first block, with the grid axes that have as many steps."""
    found = []
    for at, value in enumerate(block.indices or ()):
        blocks = _blocks(block, at) if value == Const(0) else None
        for axis, size in enumerate(block.grid.sizes if blocks not in (None, 1) else ()):
            if blocks is not None and block_count(size) == blocks and block.ignores(axis):
                found.append(Walk(at, axis, blocks, blocks))
    return found


def _axis(value: Value, launch: Launch) -> tuple[int, int] | None:
    """The grid axis of which a value is the index, or a quotient, and what it is divided by."""
    op, divisor = value.origin if isinstance(value, Array) else None, 1
    if op is not None and op.name in _QUOTIENTS and len(op.args) == 2:
        divisor = number(op.args[1]) or 0
        op = op.args[0].origin if isinstance(op.args[0], Array) else None
    axis = axis_of(op, launch) if op is not None and op.name == PROGRAM_ID and divisor > 0 else None
    return None if axis is None else (axis, divisor)


def block_count(size: Dim) -> BlockCount | int | None:
    """`n // b`, `cdiv(n, b)` and `(n + b - 1) // b` as the count that they are, any other named number as one of 1."""
    if not isinstance(size, Sym):
        return size
    whole, block = divided(size) or (size, Const(1))
    if whole is size and size.operation is not None and size.operation[0] == "//":
        whole, block = size.operation[1:]
    return BlockCount(whole, block) if isinstance(whole, Sym) and isinstance(block, Sym | Const) else None


def _blocks(block: Block, at: int) -> BlockCount | int | None:
    dimension = block.dims[at] if block.dims is not None and at < len(block.dims) else None
    if dimension is None or dimension.kind not in ("blocked", "squeezed") or not dimension.size:
        return None
    size, step = size_along(block, at), dimension.size
    if isinstance(size, int):
        return -(-size // step) if isinstance(step, int) else None
    return None if size is None else BlockCount(size, Const(step) if isinstance(step, int) else step)


def size_along(block: Block, at: int) -> Dim:
    """The size of the array in a dimension, or its name: of an operand `x`, `x.shape[0]`.

    `x.shape[-1]` where the grid has that name: the array has as many dimensions as its block. None for any other array.
    """
    if block.array_shape is not None:
        return block.array_shape[at] if len(block.array_shape) == len(block.dims or ()) else None
    operand = block.grid.launch.operand(block.index) if block.role == "in" else None
    if not isinstance(operand, Sym):
        return None
    size, behind = (Sym(f"{operand.text}.shape[{index}]", operand.owner) for index in (at, at - len(block.dims or ())))
    named = {name for known in block.grid.sizes if isinstance(known, Sym) for name in terms_in(known).symbols}
    return behind if behind in named and size not in named else size


def may_be_any(effects: Effects, *numbers: Value) -> bool:
    """Whether nothing constrains the sizes in these numbers: no comparison in the code, and no block of a kernel's ref.

    A comparison may rule out that sizes differ, or that they are large; what is a ref's has the size of its block.
    """
    compared = effects.compared
    for value in numbers:
        for symbol in terms_in(value).symbols:
            if not compared.isdisjoint(with_arrays([symbol])) or any(map(_is_bound, symbol.owners)):
                return False
    return True


def may_differ(effects: Effects, one: Value, other: Value) -> bool:
    """Whether no comparisons in the code lead from one size to the other, and none is that of a kernel's ref."""
    left, right = terms_in(one).symbols, terms_in(other).symbols
    if any(_is_bound(owner) for symbol in (*left, *right) for owner in symbol.owners):
        return False
    return _linked(left, effects).isdisjoint(right)


def may_be_several(effects: Effects, count: Value, block: Value) -> bool:
    """Whether nothing limits a number of blocks to one.

    No comparison leads from what it is made of to a number, to something unknown or to the size of the block: `assert
    scales.shape[0] == k // 128` limits neither size.
    """
    within = set(terms_in(block).symbols)
    sizes = set(terms_in(count).symbols) - within
    chosen = {owner for symbol in within for owner in symbol.owners if isinstance(owner, Choice)}
    if not sizes or any(_is_bound(owner) for symbol in sizes for owner in symbol.owners - chosen):
        return False
    if chosen and None in _linked(terms_in(count).symbols, effects):
        return False  # the size is among what the block is chosen from
    linked = _linked(sizes, effects)
    unknown = any(len(group) == 1 and not group.isdisjoint(linked) for group in effects.comparisons)
    return not unknown and None not in linked and linked.isdisjoint(within)


def _linked(sizes: Iterable[Sym | None], effects: Effects) -> set[Sym | None]:
    """These sizes and all that comparisons lead to from them, None for numbers."""
    linked: set[Sym | None] = set()
    new = set(sizes)
    while new:
        linked |= new
        new = {size for known in new if known is not None for size in _compared_with(known, effects)} - linked
    return linked


def _compared_with(size: Sym, effects: Effects) -> Iterator[Sym | None]:
    """The sizes that are compared with this one: of `x.shape == y.shape`, `y.shape[1]` with `x.shape[1]`."""
    shape, _, index = size.text.partition("[")
    array = Sym(shape, size.owner) if index else None
    for group in effects.comparisons:
        if size in group:
            yield from group
        elif array is not None and array in group:
            yield from (other and Sym(f"{other.text}[{index}", other.owner) for other in group)


def with_arrays(sizes: Iterable[Sym | None]) -> set[Sym | None]:
    """These, and `x.shape` for `x.shape[0]`: `x.shape == y.shape` compares all dimensions."""
    found = set(sizes)
    return found | {Sym(size.text.partition("[")[0], size.owner) for size in found if size is not None}


def _is_bound(owner: object) -> bool:
    """Whether it owns no sizes that may be any: those of a kernel's refs, and those that a branch chooses."""
    return isinstance(owner, KernelTrace | Choice) or (isinstance(owner, SymbolOwner) and owner.in_kernel)
