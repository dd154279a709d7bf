"""What named values are where nobody passes others: a parameter's default is a hint, not a fact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.values import Const, Dim, Sym, Value
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.grid.blocks import Block, Grid


def default_of(value: Value | None, taken: dict[str, int] | None = None) -> int | None:
    """The number that a value is with every parameter at its default; `taken` gets those that it hangs on."""
    if isinstance(value, int):
        return value
    if isinstance(value, Const):
        return value.value if isinstance(value.value, int) and not isinstance(value.value, bool) else None
    if not isinstance(value, Sym):
        return None
    if value.operation is not None:
        symbol, left, right = value.operation
        numbers = default_of(left, taken), default_of(right, taken)
        if None in numbers:
            return None
        first, second = Const(numbers[0]), Const(numbers[1])
        if symbol == "cdiv":
            return -(-first.value // second.value) if second.value else None
        found = arithmetic(symbol, first, second)
        return integer(found)
    found_default = default_of(value.default, taken)
    if found_default is not None and taken is not None:
        taken[value.text] = found_default
    return found_default


def with_defaults(block: Block) -> tuple[Block, dict[str, int]]:
    """The block with every size that hangs on defaults only, and those defaults."""
    taken: dict[str, int] = {}

    def known(size: Dim) -> Dim:
        number = default_of(size, taken) if isinstance(size, Sym) else None
        return size if number is None else number

    dims = None if block.dims is None else tuple(evolve(dim, size=known(dim.size)) for dim in block.dims)
    shape = None if block.array_shape is None else tuple(known(size) for size in block.array_shape)
    grid: Grid = evolve(block.grid, sizes=tuple(known(size) for size in block.grid.sizes))
    if not taken:
        return block, taken
    return evolve(block, dims=dims, array_shape=shape, grid=grid), taken
