"""PAL403 revisit-not-consecutive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Block, Context, Example, Finding, KernelTrace, Launch, Rule, Severity
from pallas_lint.kernels.facts.buffer_uses import buffers_of, holds_pipelines
from pallas_lint.kernels.grid.grid_simulation import Fault, Simulation, Visit, axes_text, models, step_text

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.buffer_uses import BufferHistory
    from pallas_lint.kernels.grid.grid_points import Point
    from pallas_lint.kernels.grid.grid_simulation import Steps


class RevisitNotConsecutive(Rule):
    """An output block that the grid leaves and comes back to, and that the kernel expects to find as it was.

    On TPU the steps of the grid run in order, the last axis fastest, and an output block stays in VMEM only from one
    step to the next. When the index map moves on, the block is copied to HBM and its buffer is used for another; it
    is not fetched again when the map returns to it. What the kernel then reads, or adds to, is what another block
    left there. A visit that writes nothing even copies that over the result of the earlier visit. `interpret=True`
    keeps all blocks and hides it.

    ## How to fix

    Make the axis that the output's index map ignores the last one of the grid (the last ones, if there are several),
    so that all visits of a block follow each other. Where the order has to stay, sum up in a scratch buffer that holds
    all blocks, or from jax 0.9 on give the spec `pipeline_mode=pl.Buffered(1, revisit=pl.RevisitMode.ANY)` where that
    is available.

    ## Known limits

    Axes of one step do not matter. A warning where the sizes of the grid are not in the text, because one of them may
    be 1; info where each visit writes the whole block, which leaves the value of the last one, although jax requires
    blocks not to be visited again. Silent for aliased outputs, blocks in HBM, in the bodies of pipelines, and where
    code that is not seen gets the buffer.

    ## References

    - jax documentation, "Grids and BlockSpecs": on TPU the steps that write one block have to be consecutive; jax
      issue 20001; `pl.RevisitMode` in jax 0.9: "the buffer state should be considered undefined".
    - Run with jax 0.8.3, 0.10.2 and 0.12.0: `interpret=True` returns the right sums, `pltpu.InterpretParams()` raises
      "Revisited block".
    """

    code = "PAL403"
    name = "revisit-not-consecutive"
    severity = Severity.ERROR
    backends = frozenset({"tpu"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(0) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                o_ref[...] += x_ref[...]

            def column_sums(x):
                return pl.pallas_call(
                    kernel,
                    grid=(8, 4),
                    in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
                    out_specs=pl.BlockSpec((8, 128), lambda i, j: (0, j)),  #!
                    out_shape=jax.ShapeDtypeStruct((8, 512), jnp.float32),
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary", "arbitrary")),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(1) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                o_ref[...] += x_ref[...]

            def column_sums(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4, 8),
                    in_specs=[pl.BlockSpec((8, 128), lambda j, i: (i, j))],
                    out_specs=pl.BlockSpec((8, 128), lambda j, i: (0, j)),
                    out_shape=jax.ShapeDtypeStruct((8, 512), jnp.float32),
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        if not launch.form.is_over_blocks or holds_pipelines(trace, context.analysis):
            return
        for buffer in buffers_of(trace, launch, context.analysis):
            # A scratch buffer that sums up for one output is left and returned to with the output's block.
            block = buffer.results[0][1] if len(buffer.results) == 1 else None
            if block is not None and (not buffer.is_output or not block.revisitable):
                yield from self._check(buffer, block, launch, context)

    def _check(self, buffer: BufferHistory, block: Block, launch: Launch, context: Context) -> Iterator[Finding]:
        variants = models(block.grid, buffer.uses, [block], (), buffer.cache)
        shown: tuple[Visit, Visit] | None = None
        worst: Fault | None = None
        always = True
        for steps in variants or ():
            visits = steps.visits(buffer)
            if visits is None:
                return
            returned = _return(visits)
            always &= returned is not None
            shown = shown or returned
            if returned is not None:
                found = _lost_between(buffer, visits, steps)
                always &= found is not None and found.sure
                worst = worst or found
        if shown is None or (worst is None and not buffer.is_output):
            return
        severity = Severity.INFO if worst is None else Severity.ERROR if always else Severity.WARNING
        before, after = (step_text(visit.point) for visit in shown)
        doing = "written anew"
        if worst is not None:
            doing = "not written" if worst.kind == "unwritten" else "read" if worst.use.kind == "read" else "added to"
        ignored = block.ignored_axes
        along = f" (its index map ignores {axes_text(ignored)})" if ignored else ""
        place = block.index_map.site_of(block.index_map.func.node) if block.index_map is not None else launch.called_at
        output = buffer.results[0][0].parameter
        if buffer.is_output:
            message = f"output block of `{output}` is left after {before} and {doing} on its return at {after}{along}"
        else:
            message = (
                f"{buffer.spelled} holds one sum, but the output block of `{output}` is left after {before}"
                f" and returned to at {after}{along}"
            )
        related = [] if worst is None else [(worst.use.access.site, "used here")]
        yield context.finding(
            place,
            message,
            help="move the axes that the index map ignores to the end of the grid: the last axis runs fastest",
            severity=severity,
            related=related,
        )


def _return(visits: list[Visit]) -> tuple[Visit, Visit] | None:
    """The last step of a first visit to a block and the first step of the next one."""
    last: dict[object, int] = {}
    for at, visit in enumerate(visits):
        before = last.get(visit.block)
        if before is not None and before != at - 1:
            return visits[before], visit
        last[visit.block] = at
    return None


def _lost_between(buffer: BufferHistory, visits: list[Visit], steps: Steps) -> Fault | None:
    """What goes wrong because a block does not keep what it holds when it is left."""
    kept = [Visit(visit.point, visit.block, visit.block) for visit in visits]
    if any(fault.kind in ("unset", "lost") for fault in Simulation(buffer.uses, steps, buffer.flushing).run(kept)):
        return None  # it is wrong in any order
    stays: list[Visit] = []
    for visit in visits:
        number = stays[-1].memory[1] if stays else 0  # type: ignore[index]
        moved = bool(stays) and stays[-1].block != visit.block
        stays.append(Visit(visit.point, (visit.block, number + moved), visit.block))
    found = [fault for fault in Simulation(buffer.uses, steps, buffer.flushing).run(stays) if fault.kind == "unset"]
    if found:
        return min(found, key=lambda fault: not fault.sure)
    return _stale(buffer, stays, steps) if buffer.is_output else None


def _stale(buffer: BufferHistory, stays: list[Visit], steps: Steps) -> Fault | None:
    """A later stay at a block that writes nothing, so that what the buffer holds replaces the result."""
    writes = [use for use in buffer.uses if use.kind != "read"]
    written: dict[object, bool] = {}
    blocks: dict[object, list[object]] = {}
    first: dict[object, Point] = {}
    for visit in stays:
        first.setdefault(visit.memory, visit.point)
        happens = [steps.runs(use, visit.point) for use in writes]
        written[visit.memory] = written.get(visit.memory, False) or any(here is not False for here in happens)
        known = blocks.setdefault(visit.block, [])
        if visit.memory not in known:
            known.append(visit.memory)
    for memories in blocks.values():
        if len(memories) > 1 and not written[memories[-1]] and any(written[memory] for memory in memories):
            return Fault("unwritten", writes[0], first[memories[-1]])
    return None
