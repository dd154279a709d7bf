"""PAL301 index-map-element-offset."""

from __future__ import annotations

from collections.abc import Iterator

from pallas_lint.api import Block, Context, Example, Finding, IndexMap, Rule, Severity, blocks_of, nodes


class IndexMapElementOffset(Rule):
    """An index map that multiplies a grid index by its own block size.

    An index map returns *block* indices: Pallas multiplies them by the block shape itself. A map that returns
    `i * block` therefore points `block` times too far. From the second grid step on the block lies outside the array;
    on TPU and GPU that reads or writes whatever is there, and `interpret=True` hides it by clamping the offset into
    the array, so a test passes on wrong data.

    ## How to fix

    Return the grid index alone: `lambda i: (i, 0)`. Where element offsets are really meant (halos, overlapping
    windows), declare the dimension as `pl.Element(size)`.

    ## Fix safety

    Safe: the factor is dropped, which is the only reading under which the blocks tile the array.

    ## Known limits

    Silent for `pl.Element` and `pl.BoundedSlice` dimensions, for blocks of size 1, where the text does not show that
    factor and block size are the same value, and where it shows an array in which all these blocks lie.

    ## References

    - jax documentation, "Grids and BlockSpecs": the start of block `i` is `i * block_shape`.
    - jax issues 23181 and 31825: out-of-range index maps and what interpret mode makes of them.
    """

    code = "PAL301"
    name = "index-map-element-offset"
    severity = Severity.ERROR
    fix = "safe"
    invalid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def spec(bm):
                return pl.BlockSpec((bm, 128), lambda i, j: (i * bm, j))  #!-
                return pl.BlockSpec((bm, 128), lambda i, j: (i, j))  #+
            """,
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental import pallas as pl

            def spec(bm):
                return pl.BlockSpec((pl.Element(bm), 128), lambda i, j: (i * bm, j))
            """
        ),
        Example(
            """
            from jax.experimental import pallas as pl

            def spec(bm, blocks):
                return pl.BlockSpec((bm, 128), lambda i, j: (i * blocks + j, 0))
            """
        ),
    )

    def check_index_map(self, index_map: IndexMap, context: Context) -> Iterator[Finding]:
        dims, results = index_map.spec.dims, index_map.results
        if dims is None or results is None or len(results) != len(dims):
            return
        for at, ((node, value), dim) in enumerate(zip(results, dims, strict=True)):
            factor = index_map.block_size_in(value, dim)
            if factor is None:
                continue
            reaches = [_reach(block, at) for block in _blocks(index_map, context)]
            known = [reach for reach in reaches if reach is not None]
            inside = bool(known) and all(last < length for _, last, length in known)
            if inside and any(moves for moves, _, _ in known):
                continue  # one block in so many is meant
            site = index_map.site_of(node)
            fixes, wanted = [], "the number of the block"
            if isinstance(node, nodes.BinaryOperation):
                kept = index_map.site_of(node.left if factor == "right" else node.right).code
                wanted = f"`{kept}`"
                fixes.append(context.safe("drop the block size from the index map", context.replace(site, kept)))
            spelled = index_map.site_of(node).code
            yield context.finding(
                site,
                f"index map returns `{spelled}` for a dimension in blocks: Pallas multiplies by the block size itself",
                help=f"return {wanted}, or make dimension {at} of the block `pl.Element(...)` for offsets in elements",
                severity=Severity.WARNING if inside else Severity.ERROR,
                related=[(index_map.spec.site, "block shape given here")],
                fixes=fixes,
            )


def _blocks(index_map: IndexMap, context: Context) -> list[Block]:
    """The operands and outputs whose blocks the map places, in all launches that use it."""
    analysis, function = context.analysis, index_map.func.node
    known = analysis.blocks_of_maps.get(function)
    if known is None:
        with analysis.memo.track_dependencies() as read:
            found = list(_blocks_of(index_map, context))
        known = analysis.blocks_of_maps[function] = found, read
    analysis.memo.add_dependencies(known[1])
    return known[0]


def _blocks_of(index_map: IndexMap, context: Context) -> Iterator[Block]:
    for launch in context.analysis.launches:
        blocks = blocks_of(launch, context.analysis)
        for block in () if blocks is None else blocks.operands:
            if block is not None and block.index_map is not None and block.index_map.func.node is index_map.func.node:
                yield block


def _reach(block: Block, at: int) -> tuple[bool, int, int] | None:
    """Whether the block moves along a dimension, where the last one starts, and the array's length; None if unknown."""
    literal, shape, dims, indices = block.grid.literal, block.array_shape, block.dims, block.indices
    if literal is None or shape is None or dims is None or indices is None:
        return None
    if not len(shape) == len(dims) == len(indices):
        return None
    length, size = shape[at], dims[at].size
    found = [point.value(indices[at]) for point in block.grid.corners(literal)]
    numbers = [index for index in found if type(index) is int]
    if not isinstance(length, int) or not isinstance(size, int) or not numbers or len(numbers) < len(found):
        return None
    return len(set(numbers)) > 1, max(numbers) * size, length
