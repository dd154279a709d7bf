"""Default values of parameters: hints, not facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.grid.block_counts import size_along
from pallas_lint.kernels.model.symbols import default_of
from pallas_lint.kernels.model.values import Dim, Sym
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.kernels.grid.blocks import Block, Grid


def with_defaults(block: Block, given: Mapping[Sym, int] | None = None) -> tuple[Block, dict[str, int]]:
    """The block with every size that hangs on defaults only, and those defaults.

    Sizes that are `given` have that number, those of an operand's array, too.
    """
    taken: dict[str, int] = {}

    def known(size: Dim) -> Dim:
        number = default_of(size, taken, given) if isinstance(size, Sym) else None
        return size if number is None else number

    array_shape = block.array_shape
    if given and array_shape is None and block.dims is not None:
        array_shape = tuple(size_along(block, at) for at in range(len(block.dims)))
    dims = None if block.dims is None else tuple(evolve(dim, size=known(dim.size)) for dim in block.dims)
    shape = None if array_shape is None else tuple(known(size) for size in array_shape)
    grid: Grid = evolve(block.grid, sizes=tuple(known(size) for size in block.grid.sizes))
    if not taken:
        return block, taken
    return evolve(block, dims=dims, array_shape=shape, grid=grid), taken
