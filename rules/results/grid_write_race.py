"""PAL405 grid-write-race."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    Access,
    Block,
    Const,
    Context,
    Example,
    Finding,
    KernelTrace,
    Launch,
    Op,
    Ref,
    Rule,
    Seq,
    Severity,
    Slice,
    Sym,
    Value,
    blocks_of,
)
from pallas_lint.identity import ById
from pallas_lint.kernels.facts.buffer_uses import holds_pipelines, uses_of
from pallas_lint.kernels.facts.dataflow import Flow, inputs, is_among
from pallas_lint.kernels.grid.grid_points import axes_in, axis_of
from pallas_lint.kernels.grid.grid_simulation import axes_text, models
from pallas_lint.kernels.grid.index_ranges import points_of
from pallas_lint.kernels.model.known_names import PROGRAM_ID
from pallas_lint.kernels.model.trace import conditions_in, is_full_index
from pallas_lint.kernels.model.values import as_tuple

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.buffer_uses import BufferUse
    from pallas_lint.kernels.grid.blocks import Blocks
    from pallas_lint.kernels.grid.grid_points import LoopPoint

_MAX_EVALUATED = 10_000  # indices at steps of the grid
_ORDERING = frozenset(
    {"atomic_cas", "atomic_xchg", "swap", "semaphore_wait", "barrier_wait", "inline_asm", "elementwise_inline_asm"}
)


class GridWriteRace(Rule):
    """GPU: several steps of the grid write the same part of an output, and they run at the same time.

    On a GPU each step of the grid is a block of threads of its own, and they run in any order, many at once. Where the
    output's index map ignores a grid axis (or there are no `out_specs`, so that every step sees the whole output), all
    steps along that axis write the same memory. `o_ref[...] += v` then loses most of the summands, and of different
    values the one that came last stays. A step that reads an element which another step stores may read it before, too,
    as a scan does with `o_ref[i - 1]`. The same kernel is right on TPU, where the steps follow each other, and in
    interpret mode.

    ## How to fix

    Sum up within one step: take the axis out of the grid and loop over it in the kernel. Or use
    `plgpu.atomic_add(o_ref, index, v)` into an output that starts at zero (an input aliased with
    `input_output_aliases`), or give each step a part of the output of its own and add these up afterwards.

    ## Known limits

    For `pallas_call` only; `plgpu.kernel` has no blocks. Silent where an index or a condition depends on the axis or
    on data, where the kernel takes a lock, and where every step writes the same value. A warning where the sizes of
    the grid are not in the text.

    ## References

    - ROCm/jax issue 764: all steps of the grid wrote one output. jax documentation, "Grids and BlockSpecs": on GPU the
      order of the steps is not specified.
    - The lowering of jax 0.5.3 to 0.10.2 for Mosaic GPU as it is written: axes that are not "parallel" become loops.
      Not run on a GPU.
    - Run on an H100 with jax 0.11.2, Triton: 64 steps that each add 1 to a block, the first of them setting it to zero,
      come to 1 or 2.
    - Run on an H200 with jax 0.11.2, Triton: of 64 steps that each add an element to the one that the step before
      stored, all read 0.
    """

    code = "PAL405"
    name = "grid-write-race"
    severity = Severity.ERROR
    backends = frozenset({"triton", "mosaic_gpu"})
    invalid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(1) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                o_ref[...] += x_ref[...]  #!

            def row_sums(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4, 8),
                    in_specs=[pl.BlockSpec((16, 128), lambda i, j: (i, j))],
                    out_specs=pl.BlockSpec((16, 128), lambda i, j: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """,
            jax="0.8.3",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2  #!

            def double(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((16, 128), lambda i: (i, 0))],
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """,
            jax="0.8.3",
        ),
    )
    valid = (
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                rows = pl.ds(pl.program_id(0) * 16, 16)
                o_ref[rows, :] = x_ref[rows, :] * 2

            def double(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    out_shape=jax.ShapeDtypeStruct((64, 128), jnp.float32),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                )(x)
            """,
            jax="0.8.3",
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, zeros_ref, o_ref):
                plgpu.atomic_add(o_ref, ..., x_ref[...])

            def total(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[
                        pl.BlockSpec((16, 128), lambda i: (i, 0)),
                        pl.BlockSpec((16, 128), lambda i: (0, 0)),
                    ],
                    out_specs=pl.BlockSpec((16, 128), lambda i: (0, 0)),
                    out_shape=jax.ShapeDtypeStruct((16, 128), jnp.float32),
                    compiler_params=plgpu.CompilerParams(num_warps=4),
                    input_output_aliases={1: 0},
                )(x, jnp.zeros((16, 128), jnp.float32))
            """,
            jax="0.8.3",
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        blocks = blocks_of(launch, context.analysis) if launch.form.is_over_blocks else None
        if blocks is None or not blocks.grid.rank or holds_pipelines(trace, context.analysis):
            return
        if any(op.short in _ORDERING for op in trace.ops()):
            return  # a lock, perhaps
        given = any(name not in ("arbitrary", None) for name in blocks.grid.semantics)
        if None in blocks.grid.semantics and context.target is not None and context.target.backend != "triton":
            return
        flow = Flow(trace)
        for ref in trace.refs:
            block = blocks.of(ref) if ref.role == "out" else None
            if block is None or not block.sure:
                continue
            uses = uses_of(ref, trace, flow)
            shared = [
                axis
                for axis, size in enumerate(blocks.grid.sizes)
                if size != 1
                and (not given or blocks.grid.semantics[axis] == "parallel")
                and block.ignores(axis) is True
            ]
            known = uses or []
            races = ((use, axis) for axis in shared for use in known if _races(use, known, block, blocks, axis, trace))
            race = next(races, None)
            if race is not None:
                yield self._finding(ref, *race, block, context)
            elif len(shared) == blocks.grid.rank and (load := _load_of_another(ref, trace)) is not None:
                yield context.finding(
                    load.site,
                    f"this reads of `{ref.parameter}` what another step of the grid writes at the same time",
                    help="loop in the kernel with `lax.fori_loop`: on a GPU the steps of the grid run in any order",
                    certain=uses is not None,  # else a condition may throw it away
                )

    def _finding(self, ref: Ref, use: BufferUse, axis: int, block: Block, context: Context) -> Finding:
        size = block.grid.sizes[axis]
        many = f"all {size} steps" if isinstance(size, int) else "all steps"
        what = "added to" if use.kind == "update" else "written"
        certain = isinstance(size, int) and use.access.certain
        why = "the launch has no `out_specs`" if block.spec is None else "its block stays the same along it"
        return context.finding(
            use.access.site,
            f"`{ref.parameter}` is {what} by {many} of grid {axes_text((axis,))} at the same time: {why}",
            help=f"{_INSTEAD[use.kind == 'update']}: on a GPU the steps of the grid run in any order",
            certain=certain,
            related=[] if block.spec is None else [(block.spec.site, "the output's block")],
        )


# By whether the steps add to the block, or each of them writes it.
_INSTEAD = {
    True: "loop in the kernel with `lax.fori_loop`, or add by atomics (`plgpu.atomic_add`)",
    False: "give each step a block of its own, or loop in the kernel with `lax.fori_loop`",
}


def _races(use: BufferUse, uses: list[BufferUse], block: Block, blocks: Blocks, axis: int, trace: KernelTrace) -> bool:
    """Whether several steps of an axis write the same place with what need not be the same value."""
    access = use.access
    if use.kind in ("read", "obscure") or "atomic" in access.site.code:
        return False
    if not all(_stays(value, axis, trace.launch) for value in _indices(access)):
        return False
    if use.kind != "update" and not is_among(access.value, _dependent(blocks, axis, trace)):
        return False
    variants = models(block.grid, [use], [block], (axis,))
    for steps in variants or ():
        writers: dict[tuple[int, ...], int] = {}
        for point in steps.points():
            happens = steps.runs(use, point)
            if happens is None and any(guard.kind != "if" for guard in use.guards):
                return False
            rest = (*point.indices[:axis], *point.indices[axis + 1 :])
            writers[rest] = writers.get(rest, 0) + (happens is not False)
        return any(count > 1 for count in writers.values())
    return False


def _load_of_another(ref: Ref, trace: KernelTrace) -> Access | None:
    """A load of an element of an output, whole to each step, that another step stores."""
    if trace.tracked_until is not None or not trace.complete:
        return None
    uses = [access for access in trace.accesses(ref.parameter) if access.certain and access.ref is ref]
    scalars = [part for access in uses for part in _index_parts(access) if not isinstance(part, Slice)]
    conditions = [guard.condition for access in uses for guard in conditions_in(access.guards)]
    points = points_of([*scalars, *conditions], trace.launch) or ()
    if len(points) * len(uses) > _MAX_EVALUATED or len({access.kind for access in uses}) < 2:
        return None
    writers: dict[tuple[object, ...], set[tuple[int, ...]]] = {}
    readers: dict[tuple[object, ...], list[tuple[Access, tuple[int, ...]]]] = {}
    for point in points:
        for access in uses:
            element = _element(access, point)
            if element is None or point.runs(access.guards) is not True:
                continue
            if access.kind == "load":
                readers.setdefault(element, []).append((access, point.indices))
            elif access.kind == "store":
                writers.setdefault(element, set()).add(point.indices)
    loads = ((load, steps) for element, steps in writers.items() for load in readers.get(element, ()))
    return next((access for (access, reader), steps in loads if steps - {reader}), None)


def _index_parts(access: Access) -> tuple[Value, ...]:
    return as_tuple(access.index)


def _element(access: Access, point: LoopPoint) -> tuple[object, ...] | None:
    """The numbers of an index at one step, and ":" for whole dimensions; None where they are not known."""
    found = tuple(":" if is_full_index(part) else point.value(part) for part in _index_parts(access))
    return None if None in found or set(found) == {":"} else found


def _indices(access: Access) -> Iterator[Value]:
    """All indices of a write into the block, those of views included."""
    yield access.index
    ref: Ref | None = access.ref
    while ref is not None and ref.view:
        yield ref.indexer if ref.indexer is not None else Sym("?", 0)
        ref = getattr(ref, "parent", None)


def _stays(value: Value, axis: int, launch: Launch) -> bool:
    """Whether an index certainly is the same at each step of an axis."""
    if isinstance(value, Seq):
        return not value.open and all(_stays(item, axis, launch) for item in value.items)
    if isinstance(value, Slice):
        parts = (value.start, value.stop, value.step, *([] if value.size is None else [value.size]))
        return all(_stays(part, axis, launch) for part in parts)
    if isinstance(value, Const):
        return True
    axes, complete = axes_in(value, launch)
    return complete and axis not in axes


def _dependent(blocks: Blocks, axis: int, trace: KernelTrace) -> set[ById]:
    """The identities of the values that differ from step to step of an axis."""
    tainted: set[ById] = set()
    for event in trace.events:
        if isinstance(event, Access):
            block = blocks.of(event.ref) if event.kind == "load" else None
            moves = block is not None and block.role == "in" and block.ignores(axis) is False
            indexed = event.kind == "load" and any(axis in axes_in(value, trace.launch)[0] for value in _indices(event))
            if moves or indexed:
                tainted.add(ById(event.value))
        elif isinstance(event, Op):
            own = event.name == PROGRAM_ID and axis_of(event, trace.launch) == axis
            if own or any(is_among(value, tainted) for value in inputs(event)):
                tainted.add(ById(event.result))
    return tainted
