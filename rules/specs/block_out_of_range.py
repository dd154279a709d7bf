"""PAL307 block-out-of-range."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pallas_lint.api import (
    Array,
    Block,
    BlockDim,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Launch,
    Ref,
    Rule,
    Severity,
    Site,
    Sym,
    Value,
    blocks_of,
)
from pallas_lint.identity import iter_unique
from pallas_lint.kernels.facts.coverage import split_sums
from pallas_lint.kernels.facts.loaded_values import uses_loaded
from pallas_lint.kernels.grid.block_counts import (
    Walk,
    block_count,
    may_be_any,
    may_differ,
    neighbours_of,
    size_along,
    walks_of,
)
from pallas_lint.kernels.grid.grid_points import Known, Point, Scalar
from pallas_lint.probe.chip_memory import stays_in_hbm
from pallas_lint.records import frozen


class BlockOutOfRange(Rule):
    """An index map that returns, at some step of the grid, a block that lies outside the array.

    Index maps return the number of a block, from 0 to `cdiv(size, block) - 1` for each dimension. A block beyond that
    has nothing of the array in it. On TPU the copy from or to HBM stops the chip; an input that XLA keeps in VMEM is
    read at its end, and past it. On GPU the kernel reads, or overwrites, whatever memory is there. `interpret=True`
    moves the block back into the array and returns wrong results without a word. The last block may well reach over
    the end of the array: that is padded.

    An error for outputs, and on TPU for inputs that are larger than what XLA may keep in VMEM. A warning for other
    inputs: the kernel gets values that are not the array's, and nothing fails where they do not count.

    ## How to fix

    Return 0 for dimensions of which there is one block, take the block's number and not its first element, clamp
    neighbours with `jnp.clip(i + 1, 0, blocks - 1)`, or make the grid smaller. The last block of a prefetched length,
    `pl.cdiv(length, block) - 1`, is -1 for a length of 0: `jnp.maximum(..., 0)`.

    ## Known limits

    Looks at literal grids, blocks and array shapes; where a dimension of the array is not known, at negative indices,
    and at grid axes that walk along a dimension block by block: two of them that are swapped, `n // bn` steps along the
    dimension of `m // bm` blocks and the other way round, or `n // 128` steps along `n // 256` blocks. These are
    warnings, and silent where the code compares one of the sizes with anything. `i + 1` is one, too, where the grid has
    as many steps as the array has blocks, and so are the heads of keys and values where the grid has a step for each
    head of the queries, which the code divides by those of the keys. A product that sums over a dimension along a grid
    axis that no output has, while another axis walks that dimension of its other operand, is one whatever the sizes
    are. What is prefetched is taken to be 0 where it is
    divided by a number, as lengths are by block sizes, which is a warning; other index maps that read it are not
    checked, nor are those for `pl.Element` with padding and `pl.BoundedSlice`. Offsets in elements, `i * block`, are
    PAL301's. A warning where the launch is only traced, by `jax.make_jaxpr` or `jax.eval_shape`.

    ## References

    - jax issues 23181, 31707 and 31825: core dumps and "Out-of-bounds block index".
    - Run with jax 0.8.3, 0.10.2 and 0.12.0: `pltpu.InterpretParams()` raises IndexError, `interpret=True` clamps.
    - Compiled with libtpu 0.0.17 and 0.0.50 for v6e: copies of blocks from HBM have a bounds check that halts the core;
      of an array in VMEM, where operations before the kernel put it, the index is held at the last tile.
    - Run with jax 0.11.2 on an H200: Triton reads what lies behind the array.
    """

    code = "PAL307"
    name = "block-out-of-range"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def shift():
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (i + 1, 0))],  #!
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                )(jnp.ones((32, 128), jnp.float32))
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def copy(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((1, 8, 128), lambda i: (0, i, 0))],
                    out_specs=pl.BlockSpec((1, 8, 128), lambda i: (1, i, 0)),  #!
                    out_shape=jax.ShapeDtypeStruct((1, 32, 128), jnp.float32),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def copy(x):
                m, n = x.shape
                return pl.pallas_call(
                    kernel,
                    grid=(n // 256, m // 128),
                    in_specs=[pl.BlockSpec((128, 256), lambda j, i: (i, j))],
                    out_specs=pl.BlockSpec((128, 256), lambda i, j: (i, j)),  #!
                    out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, y_ref, o_ref):
                o_ref[...] = x_ref[...] + y_ref[...].T

            def add_transposed(x, y, *, block=128):
                m, n = x.shape
                if y.shape != (n, m):
                    raise ValueError(y.shape)
                return pl.pallas_call(
                    kernel,
                    grid=(m // block, n // block),
                    in_specs=[
                        pl.BlockSpec((block, block), lambda i, j: (i, j)),
                        pl.BlockSpec((block, block), lambda i, j: (i, j)),  #!
                    ],
                    out_specs=pl.BlockSpec((block, block), lambda i, j: (i, j)),
                    out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
                )(x, y)
            """
        ),
        Example(
            """
            def kernel(x_ref, scale_ref, o_ref):
                o_ref[...] = x_ref[...] * scale_ref[...]

            def scale(x, factors, bm=64, bn=128):
                rows, columns = x.shape
                assert factors.shape == (1, columns)
                return pl.pallas_call(
                    kernel,
                    grid=(rows // bm, columns // bn),
                    in_specs=[
                        pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
                        pl.BlockSpec((1, bn), lambda i, j: (0, i)),  #!
                    ],
                    out_specs=pl.BlockSpec((bm, bn), lambda i, j: (i, j)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x, factors)
            """
        ),
        Example(
            """
            def kernel(q_ref, k_ref, o_ref):
                o_ref[...] = q_ref[...] * k_ref[...]

            def products(x, tile=64):
                rows, columns = x.shape
                return pl.pallas_call(
                    kernel,
                    grid=(rows // tile, rows // tile),
                    in_specs=[
                        pl.BlockSpec((tile, columns), lambda i, j: (i, 0)),
                        pl.BlockSpec((tile, columns), lambda i, j: (i - j, 0)),  #!
                    ],
                    out_specs=pl.BlockSpec((tile, columns), lambda i, j: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x, x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...]

            def shift():
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 128), lambda i: (jnp.minimum(i + 1, 3), 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((30, 128), jnp.float32),
                )(jnp.ones((30, 128), jnp.float32))
            """
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        if launch.form.refs != "blocks" or _is_called_elsewhere(launch, context):
            return
        blocks = blocks_of(launch, context.analysis)
        if blocks is None or not blocks.grid.rank:
            return
        for block in blocks.operands:
            if block is not None and block.spec is not None and block.index_map is not None:
                yield from self._check(block, launch, context)

    def _check(self, block: Block, launch: Launch, context: Context) -> Iterator[Finding]:
        found = _outside(block)
        if block.index_map is None:
            return
        if found is None:
            yield from _of_nothing(block, context)
            if not _a_call_shows_it(block, launch, context):
                yield from _of_second_steps(block, context)
                yield from _of_names(block, context)
                yield from _of_neighbours(block, context)
            return
        at, point, index, count = found
        results = block.index_map.results
        func = block.index_map.func
        node = results[at][0] if results is not None and at < len(results) else func.node
        what = f"{'input' if block.role == 'in' else 'output'} {block.index}"
        assert block.array_shape is not None or count is None
        fact = f"index map of {what} returns {index} for dimension {at} at grid step {point.indices}"
        wanted = "return block numbers that the array has"
        if count is None:
            limit = "block indices start at 0"
        elif block.dims is not None and block.dims[at].kind == "element":
            limit = f"the array has {count} elements there"
        elif block.dims is not None and block.dims[at].kind == "squeezed":
            limit = f"the dimension has size {count}"
        else:
            limit = f"there {'is 1 block' if count == 1 else f'are {count} blocks'}"
            wanted = "return 0" if count == 1 else f"return block numbers from 0 to {count - 1}"
        sure = block.sure and block.index_map.sure and not launch.only_traced
        fails = block.role == "out" or _stays_in_hbm(block, launch)
        yield context.finding(
            block.index_map.site_of(node),
            f"{fact}: {limit}",
            help=f"{wanted}: beyond them the kernel works on memory outside the array",
            certain=sure and fails,
            related=[(block.spec.site, "block shape given here")] if block.spec is not None else [],
        )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        """A product that sums over a dimension which another grid axis walks in each operand."""
        launch = trace.launch
        blocks = blocks_of(launch, context.analysis) if launch.form.refs == "blocks" else None
        if blocks is None or not launch.form.is_over_blocks or not trace.complete:
            return
        for found in split_sums(trace, blocks):
            block, at, axis = found.other.block, found.other.dimension, found.other.axis
            results = block.index_map.results if block.index_map is not None else None
            if block.index_map is None or results is None or _outside(block) is not None:
                continue
            summed, over = found.summed, f"dimension {found.summed.dimension} of input {found.summed.block.index}"
            yield context.finding(
                block.index_map.site_of(results[at][0]),
                f"grid axis {axis} walks dimension {at} of input {block.index}, which a product sums over together with"
                f" {over}, and that is walked by axis {summed.axis}",
                help=f"return the index of axis {summed.axis}: no output has it, so it is the one that is summed over",
                severity=Severity.WARNING,
                related=[(found.op.site, "the product")],
            )


def _is_called_elsewhere(launch: Launch, context: Context) -> bool:
    """Whether this is a launch without its call (`run = pl.pallas_call(...)`), and `run(x)` is another one."""
    others = context.analysis.launches if launch.operands is None else ()
    return any(other.operands is not None and other.site.key == launch.site.key for other in others)


def _stays_in_hbm(block: Block, launch: Launch) -> bool:
    """Whether a copy from HBM, which is checked, reads the array on every TPU: XLA may keep a smaller one in VMEM."""
    if (launch.form.backend or launch.backend) != "tpu":
        return False
    if isinstance(launch.operand(block.index), Ref):
        return True  # a pipeline in a kernel copies
    return block.array_bytes is not None and stays_in_hbm(block.array_bytes)


def _outside(block: Block) -> tuple[int, Point, int, int | None] | None:
    """The first dimension, step, index and number of blocks for which a block is outside the array."""
    if block.dims is None or block.indices is None or len(block.indices) != len(block.dims):
        return None
    shape = block.array_shape if block.array_shape is not None and len(block.array_shape) == len(block.dims) else None
    counts: list[int | None] = []
    checked = []
    for at, dimension in enumerate(block.dims):
        size = shape[at] if shape is not None else None
        count = None
        if isinstance(size, int) and isinstance(dimension.size, int) and dimension.size > 0:
            count = size if dimension.kind in ("element", "squeezed") else -(-size // dimension.size)
        counts.append(count)
        if _is_element_offset(block, at, dimension):
            continue  # an offset is out of range because it counts elements: PAL301 reports it
        if dimension.kind in ("blocked", "squeezed", "whole") or (dimension.kind == "element" and not dimension.padded):
            checked.append(at)
    points = _points(block)
    for at in checked:
        value = block.indices[at]
        for point in points:
            index = point.value(value)
            if not isinstance(index, int) or isinstance(index, bool):
                break
            count = counts[at]
            if index < 0 or (count is not None and index >= count):
                return at, point, index, count if index >= 0 else None
    return None


@frozen
class _EmptyPoint(Point):
    """A step of the grid where all that was prefetched is 0."""

    def _value(self, value: Value, depth: int, known: Known) -> Scalar | None:
        if isinstance(value, Array) and value.origin is None and value.shape in ((), None) and not value.host:
            return 0
        return super()._value(value, depth, known)


def _of_nothing(block: Block, context: Context) -> Iterator[Finding]:
    """A number of blocks less one, of a length that is prefetched: -1 where that is 0."""
    results = block.index_map.results if block.index_map is not None else None
    if block.index_map is None or results is None or block.indices is None or len(results) != len(block.indices):
        return
    for at, value in enumerate(block.indices):
        if not _divides_loaded(value) or _are_bounded(block.grid.launch, context):
            continue
        for point in _points(block):
            empty = _EmptyPoint(point.indices, point.sizes, point.symbols, point.launch)
            index = empty.value(value)
            if isinstance(index, int) and index < 0:
                what = f"{'input' if block.role == 'in' else 'output'} {block.index}"
                returned = block.index_map.site_of(results[at][0])
                made = _made_negative(value, empty)
                elsewhere = made is not None and not returned.span.contains(made.span)
                yield context.finding(
                    made if made is not None and elsewhere else returned,
                    f"index map of {what} returns {index} for dimension {at} where the prefetched length is 0",
                    help="keep it in range: `jnp.maximum(..., 0)`; an empty sequence fetches some block all the same",
                    severity=Severity.WARNING,
                    related=[(returned, "returned here")] if elsewhere else [],
                )
                return


def _made_negative(value: Value, point: Point) -> Site | None:
    """The operation that makes a number negative of others that are not: `- 1`, before the minimum with a step."""
    op = value.origin if isinstance(value, Array) else None
    if op is None:
        return None
    for operand in op.args:
        number = point.value(operand)
        if isinstance(operand, Array) and isinstance(number, int) and number < 0:
            return _made_negative(operand, point)
    return op.site


def _divides_loaded(value: Value) -> bool:
    """Whether a number that was loaded goes into it as the dividend of a block size: as a length does."""
    stack = [value]
    for current in iter_unique(stack):
        op = current.origin if isinstance(current, Array) else None
        if op is None:
            continue
        if op.short in _DIVISIONS and len(op.args) == 2 and not isinstance(op.args[0], Const):
            return isinstance(op.args[1], Const) and uses_loaded(op.args[0])
        stack.extend(op.args)
    return False


def _are_bounded(launch: Launch, context: Context) -> bool:
    """Whether the code takes a maximum of something named as what is prefetched: a caller may pass no length of 0."""
    prefetched = (launch.operands or ())[: launch.prefetch_count]
    names = {operand.text for operand in prefetched if isinstance(operand, Sym)}
    if any(isinstance(operand, Array) for operand in prefetched) and launch.path.callers:
        names |= {parameter.name.value for parameter in launch.path.callers[-1].node.params.named}
    return any(match[1] in names for match in _BOUND.finditer(context.module.source.text))


def _a_call_shows_it(block: Block, launch: Launch, context: Context) -> bool:
    """Whether the block leaves its array in a known call of this launch, which is reported with its numbers."""
    for other in context.analysis.launches:
        if other.known_call is None or other.site.key != launch.site.key:
            continue
        blocks = blocks_of(other, context.analysis)
        group = None if blocks is None else blocks.inputs if block.role == "in" else blocks.outputs
        same = group[block.index] if group is not None and block.index < len(group) else None
        if same is not None and _outside(same) is not None:
            return True
    return False


def _of_second_steps(block: Block, context: Context) -> Iterator[Finding]:
    """A negative index at the second step of an axis of which the number of steps has only a name: `i - j`."""
    sizes = block.grid.sizes
    named = [at for at, size in enumerate(sizes) if isinstance(size, Sym)]
    results = block.index_map.results if block.index_map is not None else None
    free = may_be_any(context.analysis.outcome.effects, *(size for size in sizes if isinstance(size, Sym)))
    if block.index_map is None or results is None or not named or not free or len(named) > _MAX_NAMED:
        return
    tried = tuple(2 if isinstance(size, Sym) else size if isinstance(size, int) else 1 for size in sizes)
    for point in block.grid.corners(tried) if 0 not in tried else ():
        for (node, _), value in zip(results, block.indices or (), strict=False):
            index = point.value(value)
            if isinstance(index, int) and not isinstance(index, bool) and index < 0:
                what = f"{'input' if block.role == 'in' else 'output'} {block.index}"
                yield context.finding(
                    block.index_map.site_of(node),
                    f"index map of {what} returns {index} at grid step {point.indices}, where the grid has that step:"
                    " block indices start at 0",
                    help="keep it in range: `jnp.maximum(i - j, 0)`, and skip in the kernel what has no block",
                    severity=Severity.WARNING,
                    related=[(block.spec.site, "block shape given here")] if block.spec is not None else [],
                )
                return


def _of_names(block: Block, context: Context) -> Iterator[Finding]:
    """A grid axis that walks along a dimension with another number of blocks, where sizes have only names."""
    assert block.index_map is not None
    results = block.index_map.results
    if results is None or not block.sure:
        return
    effects = context.analysis.outcome.effects
    wrong = [walk for walk in walks_of(block) if walk.divisor == 1 and walk.steps != walk.blocks]
    for walk in wrong:
        if walk.counts_may_differ(effects) and any(
            other.blocks == walk.steps or _is_exchanged(walk, other) for other in wrong
        ):
            help = "swap the two indices that the index map returns, or the two axes of the grid"
        elif walk.counts_may_differ(effects) and (axis := _axis_that_fits(walk, block)) is not None:
            help = f"return the index of grid axis {axis}, which has as many steps as there are blocks"
        elif walk.counts_may_differ(effects) and _is_multiple(walk, block, context):
            help = "several steps share a block: return the quotient of the index and the steps for each block"
        elif walk.excess == 1 and walk.may_be_any(effects):
            help = "make the grid as long as the array has blocks, or return another index"
        else:
            continue
        yield context.finding(
            block.index_map.site_of(results[walk.dimension][0]),
            f"grid axis {walk.axis} has {walk.steps} steps, and dimension {walk.dimension} of"
            f" {'input' if block.role == 'in' else 'output'} {block.index} {walk.blocks} blocks",
            help=help,
            severity=Severity.WARNING,
            related=[(block.spec.site, "block shape given here")] if block.spec is not None else [],
        )
        return


def _is_exchanged(one: Walk, other: Walk) -> bool:
    """Whether each has as many steps as the array's other size needs, in blocks of its own."""
    sizes = [count.size for count in (one.steps, one.blocks, other.steps, other.blocks) if not isinstance(count, int)]
    if len(sizes) < 4 or sizes[:2] != sizes[:1:-1]:
        return False
    return all(getattr(walk.steps, "block", 0) == getattr(walk.blocks, "block", 1) for walk in (one, other))


def _is_multiple(walk: Walk, block: Block, context: Context) -> bool:
    """Whether there are several steps for each block: the code divides the heads of queries by those of keys."""
    steps, blocks = walk.steps, walk.blocks
    if isinstance(steps, int) or isinstance(blocks, int) or steps.block != blocks.block:
        return False
    effects = context.analysis.outcome.effects
    divided = [number for size, number in effects.ratios if size == steps.size and not number.is_chosen]
    alike = [blocks.size, *_along_alike(block, walk.dimension, context)]
    if not all(may_differ(effects, steps.size, one) for one in alike):
        return False
    return any(one == number or not may_differ(effects, one, number) for one in alike for number in divided)


def _along_alike(block: Block, at: int, context: Context) -> Iterator[Sym]:
    """The sizes that other inputs have in a dimension, if they have blocks of the same shape: keys, for values."""
    every = blocks_of(block.grid.launch, context.analysis)
    for other in (every.inputs or ()) if every is not None else ():
        if other is not None and other.block_shape == block.block_shape:
            size = size_along(other, at)
            if isinstance(size, Sym):
                yield size


def _axis_that_fits(walk: Walk, block: Block) -> int | None:
    """Another grid axis, which does not move the block, with a step for each block, of sizes that have names."""
    if isinstance(walk.blocks, int) or isinstance(walk.steps, int):
        return None
    axes = (at for at, size in enumerate(block.grid.sizes) if at != walk.axis and block_count(size) == walk.blocks)
    return next((axis for axis in axes if block.ignores(axis)), None)


def _of_neighbours(block: Block, context: Context) -> Iterator[Finding]:
    """A block beyond the one at hand, of an array that has as many blocks as the grid has steps."""
    assert block.index_map is not None
    results = block.index_map.results
    if results is None or not block.sure:
        return
    for each in neighbours_of(block):
        yield context.finding(
            block.index_map.site_of(results[each.dimension][0]),
            f"the last step of grid axis {each.axis} is given a block past the end: dimension {each.dimension} of"
            f" {'input' if block.role == 'in' else 'output'} {block.index} has {each.blocks} blocks, as many as there"
            " are steps",
            help="keep it in range: `jnp.minimum(i + 1, blocks - 1)`",
            severity=Severity.WARNING,
            related=[(block.spec.site, "block shape given here")] if block.spec is not None else [],
        )
        return


_BOUND = re.compile(r"\b(?:clip|maximum)\(\s*(\w+)")
_MAX_NAMED = 6  # axes whose second step is tried
_DIVISIONS = frozenset({"floor_divide", "cdiv", "div", "right_shift", "shift_right_logical"})


def _is_element_offset(block: Block, at: int, dimension: BlockDim) -> bool:
    results = block.index_map.results if block.index_map is not None else None
    if block.index_map is None or results is None or at >= len(results):
        return False
    return block.index_map.block_size_in(results[at][1], dimension) is not None


def _points(block: Block) -> list[Point]:
    """The steps of a literal grid; of a large one the corners, between which most maps only grow."""
    literal = block.grid.literal
    if literal is None:
        # A constant is the same whatever the grid; axes of which the size is not known have a step 0.
        sizes = tuple(size if isinstance(size, int) else 1 for size in block.grid.sizes)
        if 0 in sizes:
            return []
        return list(block.grid.corners(sizes))
    total = 1
    for size in literal:
        total *= size
    return list(block.grid.points() if total <= 4096 else block.grid.corners(literal))
