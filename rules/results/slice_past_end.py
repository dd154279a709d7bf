"""PAL412 slice-past-end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    UNKNOWN,
    Array,
    Const,
    Context,
    Example,
    Finding,
    Guard,
    KernelTrace,
    Launch,
    Rule,
    Severity,
    Slice,
    Sym,
    Value,
    blocks_of,
)
from pallas_lint.compat.versions import parse
from pallas_lint.kernels.facts.named_axes import axis_points, gpu_axes_in, indices_in
from pallas_lint.kernels.facts.subcores.mesh import axes_of_subcores
from pallas_lint.kernels.grid.block_counts import BlockCount, block_count, may_be_any, may_be_several, may_differ
from pallas_lint.kernels.grid.blocks import table_reads
from pallas_lint.kernels.grid.grid_points import axes_in, axis_of, loops_in, terms_in
from pallas_lint.kernels.grid.index_ranges import (
    always_holds,
    blocks_in,
    divided,
    extents,
    number,
    parts_of,
    points_of,
    reach_of,
    size_of,
    start_of,
    summed,
)
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.kernels.model.trace import conditions_in
from pallas_lint.kernels.model.values import Shape, as_tuple
from pallas_lint.text.wording import plural

if TYPE_CHECKING:
    from pallas_lint.kernels.grid.index_ranges import IndexRange, SliceUse

_PADDING = "pad the array, or mask the access: Pallas pads blocks, not slices of refs"
_MASKED = ("load", "store", "atomic_", "swap")


class SlicePastEnd(Rule):
    """A slice of a ref that reaches past the end of the memory behind it.

    Blocks that reach over the end of an array are padded by Pallas; slices within a kernel are not. The last turn of
    a loop over `pl.cdiv(n, block)` reads `ref[pl.ds(i * block, block)]` past the end whenever `block` does not divide
    `n`: on TPU and GPU that is other memory, or a fault of the copy engine. `interpret=True` moves the
    slice back until it fits, so that the last rows come twice; `pltpu.InterpretParams()` raises.

    On Triton a range of indices, `ref[step * 256 + jnp.arange(256)]`, is such a slice: without a mask it reads and
    writes what lies behind the array, and nothing fails.

    Index maps read prefetched tables: `table[j, i]` of a table that has a row for each step of axis `i` is past its
    end. That is a warning, by the numbers of a known call or by the names of its sizes.

    Slices of Python, `ref[120:136]`, end where the ref does: with 128 rows it has 8 (a store of 16 is PAL506), and with
    120 or fewer jax refuses it.

    ## How to fix

    Pad the array to a multiple of the block, choose a block that divides it, or load with a mask where the backend has
    masked loads.

    ## Known limits

    Numbers that the text gives, `cdiv` of the same dimension, slices a whole block ahead of the step, indices that
    count to the size itself, and buffers of one block that are indexed by the offset in the whole array,
    `buf[pl.ds(i * block, block)]`, are checked; anything else is silent, as are accesses under a condition that is not
    computed of loop and grid indices alone, loads with a mask, and sizes that the code takes a remainder of somewhere,
    or a remainder by the block, which is how one checks that a block divides. Where a known call has all sizes, a block
    that need not divide them is an info: what that call does is judged with its numbers.

    ## References

    - SparseCores: a slice at `lax.axis_index(...)` that leaves the array on one of the subcores compiles for v6e and
      v7x with 0.12.0.1.
    - Ranges of indices, run on an H200 with jax 0.11.2, Triton: 4 steps of 256 indices in arrays of 1000 elements run
      without an error.
    - helion issue 2104: `pl.ds` past the end, unlike `BlockSpec`, has no out-of-bounds masking.
    - Run and lowered with jax 0.4.35, 0.8.3, 0.10.2 and 0.12.0.1. A constant slice past the end: "Out of bound slice"
      while tracing, with a mask too; one that starts at 0 passes up to 0.11.2, where a mask makes it right. A constant
      index, or the last turn of a loop: lowers for TPU (and for CUDA on 0.4.35 and 0.8.3), wrong rows with
      `interpret=True`, IndexError with `InterpretParams()`.
    - Mosaic GPU, run on an H200 with jax 0.11.2: a store at `lax.axis_index(...)` past the end of an array in GMEM
      writes to other memory without a message. Copies (`copy_gmem_to_smem`) leave out what is past the end.
    - `ref[start:stop]`, traced with these, 0.5.3, 0.6.2, 0.7.2, 0.9.2 and 0.11.2: "Out of bound slice" from the
      dimension's size on, to load and to store; one that starts before is cut short in all.
    """

    code = "PAL412"
    name = "slice-past-end"
    severity = Severity.ERROR
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.zeros_like(o_ref)

                def body(i, _):
                    o_ref[...] += x_ref[pl.ds(i * 16, 16), :]  #!

                jax.lax.fori_loop(0, pl.cdiv(x_ref.shape[0], 16), body, None)

            def total(x):
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype))(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[pl.ds(120, 16), :]  #!

            def last(x):
                return pl.pallas_call(
                    kernel,
                    in_specs=[pl.BlockSpec((128, 128), lambda: (0, 0))],
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref, tile_ref):
                here = pl.ds(pl.program_id(0) * 64, 64)
                tile_ref[here, :] = x_ref[...]  #!
                o_ref[...] = tile_ref[here, :]  #!

            def copy(x):
                return pl.pallas_call(
                    kernel,
                    grid=(x.shape[0] // 64,),
                    in_specs=[pl.BlockSpec((64, 128), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((64, 128), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    scratch_shapes=[pltpu.VMEM((64, 128), jnp.float32)],
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                next_ = (pl.program_id(1) + 1) * 128
                o_ref[...] = x_ref[:, pl.ds(next_, 128)]  #!

            def shifted(x):
                rows, columns = x.shape
                return pl.pallas_call(
                    kernel,
                    grid=(rows // 8, columns // 128),
                    in_specs=[pl.BlockSpec((8, columns), lambda i, j: (i, 0))],
                    out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, j)),
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)
            """
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem):
                rows = pl.ds(lax.axis_index("row") * 64, 64)
                o_gmem[rows] = x_gmem[rows] * 2  #!

            def double(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    grid=(pl.cdiv(x.shape[0], 64),),
                    grid_names=("row",),
                )(x)

            double(jnp.ones((160, 128)))
            """,
            target="mosaic_gpu",
        ),
        Example(
            """
            def kernel(x_ref, o_ref, *, rows, part):
                @pl.loop(0, rows // part)
                def _(s):
                    here = pl.ds(pl.program_id(0) * rows + s * part, part)
                    o_ref[here, :] = x_ref[here, :]  #!

            def run(x, rows=64, part=8):
                block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
                return pl.pallas_call(
                    lambda x_ref, o_ref: kernel(x_ref, o_ref, rows=rows, part=part),
                    grid=(x.shape[0] // rows,),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)
            """
        ),
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[0] = x_ref[pl.program_id(0)]  #!

            def run(x):
                block = pl.BlockSpec((1, *x.shape[1:]), lambda b: (b, 0, 0))
                return pl.pallas_call(
                    kernel,
                    grid=x.shape[:1],
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.zeros_like(o_ref)

                def body(i, _):
                    o_ref[...] += x_ref[pl.ds(i * 16, 16), :]

                jax.lax.fori_loop(0, x_ref.shape[0] // 16, body, None)

            def total(x):
                assert x.shape[0] % 16 == 0
                return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype))(x)
            """
        ),
        Example(
            """
            from jax.experimental.pallas import mosaic_gpu as plgpu

            def kernel(x_gmem, o_gmem, x_smem, arrived):
                rows = pl.ds(lax.axis_index("row") * 64, 64)
                plgpu.copy_gmem_to_smem(x_gmem.at[rows], x_smem, arrived)
                plgpu.barrier_wait(arrived)
                plgpu.copy_smem_to_gmem(x_smem, o_gmem.at[rows])
                plgpu.wait_smem_to_gmem(0)

            def copy(x):
                return plgpu.kernel(
                    kernel,
                    out_type=jax.ShapeDtypeStruct(x.shape, x.dtype),
                    grid=(pl.cdiv(x.shape[0], 64),),
                    grid_names=("row",),
                    scratch_types=[plgpu.SMEM((64, 128), jnp.float32), plgpu.Barrier()],
                )(x)

            copy(jnp.ones((160, 128)))
            """,
            target="mosaic_gpu",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        masked = {
            op.site.key for op in trace.ops() if op.short.startswith(_MASKED) and op.argument("mask", 2) is not None
        }
        for part in parts_of(trace):
            if part.ref.dtype == "semaphore" or part.ref.space == "semaphore":
                continue
            is_masked = part.access.site.key in masked
            if is_masked and part.is_array:
                continue
            finding = _constant(part, is_masked, trace, context)
            if finding is None and not is_masked and not isinstance(start_of(part), Const):
                finding = _moving(part, trace, context)
            if finding is not None:
                yield finding

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        """Prefetched tables that index maps read."""
        blocks = blocks_of(launch, context.analysis) if launch.prefetch_count else None
        done: set[object] = set()
        for block in blocks.operands if blocks is not None else ():
            trace = table_reads(block) if block is not None and block.sure else None
            for part in parts_of(trace) if trace is not None else ():
                problem = _leaves_table(part, launch, context)
                if problem is None or part.access.site.key in done:
                    continue
                done.add(part.access.site.key)
                yield context.finding(
                    part.access.site,
                    f"{problem} `{part.ref.parameter}` in the index map",
                    help="index the table in the order of its dimensions",
                    severity=Severity.WARNING,
                )


def _table_shape(part: SliceUse, launch: Launch) -> Shape | None:
    """The sizes of a prefetched array, or their names, of as many dimensions as are indexed."""
    operands, at = launch.operands or [], part.ref.index
    table = operands[at] if at is not None and at < len(operands) else None
    if part.ref.shape is not None or not isinstance(table, Sym):
        return part.ref.shape
    indexed = range(len(as_tuple(part.access.index)))
    return tuple(Sym(f"{table.text}.shape[{axis}]", table.owner) for axis in indexed)


def _leaves_table(part: SliceUse, launch: Launch, context: Context) -> str | None:
    """How an index that moves with the grid leaves the dimension of a table, by numbers or by the names of sizes."""
    start, shape = start_of(part), _table_shape(part, launch)
    op = start.origin if isinstance(start, Array) else None
    if shape is None or part.axis >= len(shape) or not part.access.certain or part.access.guards:
        return None
    length = shape[part.axis]
    if isinstance(length, int):
        steps = [point.value(start) for point in points_of([start], launch) or ()]
        last = max((step for step in steps if isinstance(step, int)), default=0)
        past = last >= length and not isinstance(start, Const)
        return f"the last index is {last}, and dimension {part.axis} has size {length}, of" if past else None
    axis = axis_of(op, launch) if op is not None and op.name == PROGRAM_ID else None
    if axis is None or launch.grid is None or launch.grid.open or axis >= len(launch.grid.items):
        return None
    count = launch.grid.items[axis]
    if not isinstance(length, Sym) or not isinstance(count, Sym) or count == length or count not in shape:
        return None
    if not may_differ(context.analysis.outcome.effects, count, length):
        return None
    return f"the index of grid axis {axis}, which has {count.text} steps, is that of dimension {part.axis} of"


def _constant(part: SliceUse, masked: bool, trace: KernelTrace, context: Context) -> Finding | None:
    """A slice or index given in numbers."""
    start, size = number(start_of(part)), number(size_of(part))
    length = _length(part, trace)
    if start is None or length is None or start < 0:
        return None
    if isinstance(part.index, Slice) and part.index.size is None:
        # `ref[start:stop]` ends where the ref does, as in Python, but jax needs something to be left.
        if start < length or length == 0:
            return None
        what = f"slice starts at {start}"
    elif size is None or start + size <= length:
        return None
    else:
        what = f"{part.noun} ends at {start + size}" if isinstance(part.index, Slice) else f"index {start}"
    versions: tuple[str, ...] = ()
    if masked and start == 0:  # the row of a softmax in a block of a power of two: right until jax refused it
        versions = context.failing(lambda version: parse(version) >= (0, 12))
        if not versions:
            return None
    return context.finding(
        part.access.site,
        f"{what}, but dimension {part.axis} of `{part.ref.parameter}` has size {length}",
        help=f"{_room(start, length, size)}: what lies past the end is not the array's",
        op=part.access,
        only_in=versions,
    )


def _moving(part: SliceUse, trace: KernelTrace, context: Context) -> Finding | None:
    """A slice or index that is not the same at each step."""
    conditions = conditions_in(part.access.guards)
    finding = _guarded(part, conditions, trace, context) if conditions else None
    if finding is None and all(always_holds(guard, trace.launch) for guard in conditions):
        finding = _counted(part, trace, context)
    return finding or _at_one_place(part, conditions, trace, context)


def _length(part: SliceUse, trace: KernelTrace) -> int | None:
    """The size of the dimension, where it is a number."""
    return next((known for known in map(number, extents(part, trace)) if known is not None), None)


def _room(start: int, length: int, size: int | None) -> str:
    """What may be taken instead."""
    if size in (None, 1) or start >= length:
        return f"the last index is {length - 1}"
    return f"take at most {length - start} from there"


def _counted(part: SliceUse, trace: KernelTrace, context: Context) -> Finding | None:
    """A slice that moves with a loop or with the grid."""
    reach, size = reach_of(start_of(part), trace.launch), size_of(part)
    if reach is None and size is not None:
        blocks = blocks_in(start_of(part), trace.launch)
        passed = None if blocks is None else _second_step(part, blocks, trace, context)
        return passed or _named_blocks_ahead(part, size, trace, context)
    if reach is None or size is None:
        return None
    length = _length(part, trace)
    last, known_size = reach.last, number(size)
    if length is not None and last is not None and known_size is not None:
        if last < 0 or last + known_size <= length:
            return None
        return context.finding(
            part.access.site,
            f"the last {part.noun} ends at {last + known_size}, but dimension {part.axis} of `{part.ref.parameter}`"
            f" has size {length}",
            help=_PADDING,
            op=part.access,
        )
    passed = (
        _second_step(part, reach, trace, context)
        or _ahead(part, reach, trace, context)
        or _one_too_far(part, reach, trace, context)
    )
    if passed is not None:
        return passed
    if trace.launch.known_call is not None:
        return None  # a known call adds numbers: symbols that it leaves open are as unknown as without it
    ratio = divided(reach.count)
    if (
        ratio is None
        or reach.offset
        or reach.factor != size
        or ratio[1] != size
        or ratio[0] not in extents(part, trace)
    ):
        return None
    if _is_checked(ratio[0], size, context) or (isinstance(size, Sym) and size.is_chosen):
        return None  # a size that a branch chooses may be one that divides it
    spelled = size.text if isinstance(size, Sym) else str(size.value) if isinstance(size, Const) else "the block"
    return context.finding(
        part.access.site,
        f"the last {part.noun} reaches past the end of `{part.ref.parameter}` where {spelled} does not divide dimension"
        f" {part.axis}",
        help=_PADDING,
        severity=Severity.INFO if _is_called_with_sizes(trace.launch, context) else Severity.WARNING,
    )


def _is_called_with_sizes(launch: Launch, context: Context) -> bool:
    """Whether a known call gives every operand's shape: where the slice passes the end there, that is reported."""
    return any(
        other.known_call is not None
        and other.site.key == launch.site.key
        and all(isinstance(each, Array) and each.has_known_shape for each in other.operands or (None,))
        for other in context.analysis.launches
    )


def _second_step(part: SliceUse, reach: IndexRange, trace: KernelTrace, context: Context) -> Finding | None:
    """A slice that has left a buffer of one block by the second step, of a number of steps that has only a name."""
    size = size_of(part)
    if not isinstance(reach.count, Sym) or reach.offset or not part.access.certain:
        return None
    length, known_size, factor = _length(part, trace), number(size), number(reach.factor)
    if length is not None and known_size is not None and factor is not None:
        if known_size > length or factor + known_size <= length:
            return None
    elif not (isinstance(reach.factor, Sym) and reach.factor in extents(part, trace)):
        return None
    effects = context.analysis.outcome.effects
    if not may_be_any(effects, reach.count, reach.factor) and not may_be_several(effects, reach.count, reach.factor):
        return None
    spelled = length if length is not None else reach.factor.text if isinstance(reach.factor, Sym) else "?"
    return context.finding(
        part.access.site,
        f"the {part.noun} leaves dimension {part.axis} of `{part.ref.parameter}`, which has size {spelled}, at the"
        f" second of {block_count(reach.count)} steps",
        help="a buffer of one block is indexed from 0 at each step; offsets in the whole array are the index map's",
        severity=Severity.WARNING,
    )


def _ahead(part: SliceUse, reach: IndexRange, trace: KernelTrace, context: Context) -> Finding | None:
    """A slice a whole block ahead of the step, in a dimension that the steps fill, of a size that has only a name."""
    count = block_count(reach.count) if isinstance(reach.count, Sym) else None
    size = number(size_of(part))
    if not isinstance(count, BlockCount) or size is None or reach.factor != Const(size) or count.block != Const(size):
        return None
    if reach.offset < size:
        return None
    return _behind_the_last(
        part, count, f"{count} steps of {size} fill it, and this one is {reach.offset}", trace, context
    )


def _one_too_far(part: SliceUse, reach: IndexRange, trace: KernelTrace, context: Context) -> Finding | None:
    """An index that counts to the size of its dimension and beyond, which has only a name: `range(1, n + 1)`."""
    size = number(size_of(part))
    if size is None or reach.factor != Const(1) or not part.access.certain:
        return None
    count, more = summed(reach.count)
    end = more + reach.offset + size - 1
    lengths = (each for each in extents(part, trace) if isinstance(each, Sym) and count != Const(0))
    length = next((each for each in lengths if summed(each)[0] == count and end > summed(each)[1]), None)
    if length is None:
        return None
    return context.finding(
        part.access.site,
        f"the last index is past the end of dimension {part.axis} of `{part.ref.parameter}`, which has size"
        f" {length.text}",
        help="the last one is the size less 1",
        severity=Severity.WARNING,
    )


def _named_blocks_ahead(part: SliceUse, size: Value, trace: KernelTrace, context: Context) -> Finding | None:
    """`pl.ds((i + 1) * bm, bm)` for each of `m // bm` steps, in a dimension of m elements."""
    start = start_of(part)
    op = start.origin if isinstance(start, Array) else None
    sides = op.args if op is not None and op.name == "jax.numpy.multiply" and len(op.args) == 2 else (UNKNOWN, UNKNOWN)
    index = next((sides[1 - at] for at, side in enumerate(sides) if side == size and isinstance(side, Sym)), UNKNOWN)
    reach = reach_of(index, trace.launch)
    count = block_count(reach.count) if reach is not None and isinstance(reach.count, Sym) else None
    if reach is None or not isinstance(count, BlockCount) or reach.factor != Const(1) or reach.offset < 1:
        return None
    if count.block != size:
        return None
    ahead = "a step" if reach.offset == 1 else f"{reach.offset} steps"
    return _behind_the_last(part, count, f"{count} steps fill it, and this one is {ahead}", trace, context)


def _behind_the_last(
    part: SliceUse, count: BlockCount, why: str, trace: KernelTrace, context: Context
) -> Finding | None:
    """A slice that at the last step is behind the blocks that fill its dimension."""
    if count.size not in extents(part, trace) or not part.access.certain:
        return None
    return context.finding(
        part.access.site,
        f"the last {part.noun} is past the end of dimension {part.axis} of `{part.ref.parameter}`: {why} ahead",
        help=_PADDING,
        severity=Severity.WARNING,
    )


def _guarded(part: SliceUse, conditions: tuple[Guard, ...], trace: KernelTrace, context: Context) -> Finding | None:
    """A slice under conditions that let a step through in which it ends past the end."""
    start, size = start_of(part), number(size_of(part))
    length = _length(part, trace)
    if size is None or length is None or not part.access.certain:
        return None
    points = points_of([start, *(guard.condition for guard in conditions)], trace.launch)
    for point in points or ():
        first = point.value(start)
        if not isinstance(first, int) or first + size <= length or not point.runs(part.access.guards):
            continue
        guard = next((each for each in reversed(conditions) if _share_indices(each.condition, start, trace)), None)
        passed = f"ends at {first + size}, but dimension {part.axis} of `{part.ref.parameter}` has size {length}"
        if guard is None:
            return context.finding(part.access.site, f"the {part.noun} {passed}", help=_PADDING)
        return context.finding(
            guard.site,
            f"the condition lets a {part.noun} through that {passed}",
            help="test the step that is accessed, `i + 1 < n` for the next one, not the one at hand",
            op=part.access,
            related=[(part.access.site, f"the {part.noun}")],
        )
    return None


def _at_one_place(
    part: SliceUse, conditions: tuple[Guard, ...], trace: KernelTrace, context: Context
) -> Finding | None:
    """A slice that ends past the end at one place on the named axes, of a SparseCore mesh or of a Mosaic GPU grid."""
    start, size, length = start_of(part), number(size_of(part)), _length(part, trace)
    if size is None or length is None or not part.access.certain or not any(indices_in(start)):
        return None
    axes = _axes(part, trace, context)
    for point in axis_points([start, *(guard.condition for guard in conditions)], trace.launch, axes) if axes else ():
        first = point.value(start)
        if not isinstance(first, int) or first + size <= length or not point.runs(part.access.guards):
            continue
        at = ", ".join(f"{axis} {index}" for axis, index in point.coordinates.items())
        return context.finding(
            part.access.site,
            f"on {at} of {' x '.join(map(str, axes.values()))} the {part.noun} ends at {first + size}, but dimension"
            f" {part.axis} of `{part.ref.parameter}` has size {length}",
            help=f"divide the size by that of the {plural('axis', len(axes))}, or guard it with `pl.when`",
        )
    return None


def _axes(part: SliceUse, trace: KernelTrace, context: Context) -> dict[str, int]:
    """The named axes with their sizes; none where these are not known, or the slice may be past the end."""
    devices = {target.device for target in context.settings.target}
    subcores = axes_of_subcores(trace.launch, devices.pop() if len(devices) == 1 else None)
    if subcores is not None or part.access.ref.view:  # on a GPU, copies leave out what is past the end
        return subcores or {}
    return gpu_axes_in(trace)


def _share_indices(one: Value, other: Value, trace: KernelTrace) -> bool:
    """Whether two scalars depend on one loop, or on one axis of the grid."""
    if not set(loops_in(one)).isdisjoint(loops_in(other)):
        return True
    return not axes_in(one, trace.launch)[0].isdisjoint(axes_in(other, trace.launch)[0])


def _is_checked(length: Value, size: Value, context: Context) -> bool:
    """Whether the code takes a remainder of the size, or of a factor of it, or divides it by the block."""
    notes = context.analysis.outcome.effects
    return size in notes.divisors or not notes.remainders.isdisjoint(terms_in(length).symbols)
