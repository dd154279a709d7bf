"""PAL404 parallel-reduction-axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Example, Finding, Fix, KernelTrace, Launch, Rule, Severity, Site, nodes
from pallas_lint.kernels.facts.buffer_uses import buffers_of, holds_pipelines
from pallas_lint.kernels.grid.blocks import grid_of
from pallas_lint.kernels.grid.grid_simulation import Simulation, models, tested_axes
from pallas_lint.kernels.launches.dimension_semantics import semantics_site

if TYPE_CHECKING:
    from pallas_lint.kernels.facts.buffer_uses import BufferHistory
    from pallas_lint.kernels.grid.blocks import Grid
    from pallas_lint.kernels.grid.grid_simulation import Fault

_PARALLEL = ("parallel", "core_parallel", "subcore_parallel")
_TWO_CORES = ("v4", "v5p")  # one program runs on both cores of the chip


class ParallelReductionAxis(Rule):
    """A grid axis over which a buffer is accumulated, marked `"parallel"`.

    `dimension_semantics="parallel"` promises that the steps of an axis need nothing from each other. On TPUs of which
    one program uses both cores (v4, v5p) half of the steps then run on each core, with an output buffer and scratch
    of its own: each core sums up its half, the core that runs no first step starts from what its memory held, and the
    one that is done last overwrites the other's result. On a single core nothing shows.

    ## How to fix

    Mark every axis over which something is accumulated or carried `"arbitrary"` (`pltpu.ARBITRARY`); keep
    `"parallel"` for those along which each step has blocks of its own.

    ## Fix safety

    Safe: on one core the order of steps is the same; on two the result was wrong. Unsafe where the buffer is set only
    when this axis begins while it could be carried along another one: perhaps the guard tests the wrong axis.

    ## Known limits

    A warning unless the target is a TPU with two cores to a program. The fix is offered where the axis has a literal
    of its own in the launch. Silent where the semantics, the grid's rank or the guards are not known, and in
    the bodies of pipelines. Of the probe's findings, an output that is set as a whole wherever the other axes begin,
    as scratch is, has a warning.

    ## References

    - jax documentation, "TPU pipelining", "TPUs in Megacore configuration": parallel axes must not carry dependencies.
    - helion issue 2592: reduction axes have to be "arbitrary".
    - Run with jax 0.8.3, 0.10.2 and 0.12.0 under `pltpu.InterpretParams()` with two cores: wrong sums.
    """

    code = "PAL404"
    name = "parallel-reduction-axis"
    severity = Severity.ERROR
    fix = "safe"
    backends = frozenset({"tpu"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                @pl.when(pl.program_id(1) == 0)
                def _():
                    o_ref[...] = jnp.zeros_like(o_ref)

                o_ref[...] += x_ref[...]

            def row_sums(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4, 8),
                    in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
                    out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 128), jnp.float32),
                    compiler_params=pltpu.CompilerParams(
                        dimension_semantics=("parallel", "parallel"),  #!-
                        dimension_semantics=("parallel", "arbitrary"),  #+
                    ),
                )(x)
            """,
            run="row_sums(f32(32, 512))",
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = jnp.sum(x_ref[...], axis=1, keepdims=True)

            def row_sums(x):
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[pl.BlockSpec((8, 1024), lambda i: (i, 0))],
                    out_specs=pl.BlockSpec((8, 1), lambda i: (i, 0)),
                    out_shape=jax.ShapeDtypeStruct((32, 1), jnp.float32),
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
                )(x)
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        grid = grid_of(launch)
        if not launch.form.is_over_blocks or grid is None or holds_pipelines(trace, context.analysis):
            return
        parallel = [axis for axis, name in enumerate(grid.semantics) if name in _PARALLEL and grid.sizes[axis] != 1]
        if not parallel:
            return
        reported: set[int] = set()
        for buffer in buffers_of(trace, launch, context.analysis):
            for axis in parallel:
                fault = None if axis in reported else _dependence(buffer, grid, axis)
                if fault is not None:
                    reported.add(axis)
                    yield self._finding(buffer, fault, axis, grid, launch, context)

    def _finding(
        self, buffer: BufferHistory, fault: Fault, axis: int, grid: Grid, launch: Launch, context: Context
    ) -> Finding:
        device = context.device
        site, own = semantics_site(launch, axis)
        meant = _axis_meant(buffer, grid, axis)
        fix = context.safe if meant is None else context.unsafe
        fixes: list[Fix] = []
        if own is not None:
            node = own.node
            if isinstance(node, nodes.SimpleString):
                quote = node.quote
                fixes.append(fix(f"mark axis {axis} arbitrary", context.replace(own, f"{quote}arbitrary{quote}")))
            elif isinstance(node, nodes.Attribute) and node.attr.value == "PARALLEL":
                name = Site(own.piece, node.attr)
                fixes.append(fix(f"mark axis {axis} arbitrary", context.replace(name, "ARBITRARY")))
        help_ = 'mark it "arbitrary": the steps of a parallel axis may run on two cores with memories of their own'
        if meant is not None:
            help_ += f", or set {buffer.spelled} where axis {meant} begins, if that is the one to carry along"
        doing = "read" if fault.use.kind == "read" else "added to"
        return context.finding(
            own or site,
            f'grid axis {axis} is marked "{grid.semantics[axis]}", but {buffer.spelled} is carried along it',
            help=help_,
            certain=device in _TWO_CORES and fault.sure,
            related=[(fault.use.access.site, f"{doing} here")],
            fixes=fixes,
        )


def _dependence(buffer: BufferHistory, grid: Grid, axis: int) -> Fault | None:
    """A use of what another step of the axis left in the buffer."""
    if not buffer.results or _is_set_first(buffer):
        return None
    blocks = [block for _, block in buffer.results]
    several = (axis, *(other for other in range(grid.rank) if all(block.ignores(other) for block in blocks)))
    dependence: Fault | None = None
    for steps in models(grid, buffer.uses, blocks, several, buffer.cache) or ():
        visits = steps.visits(buffer)
        if visits is None or any(fault.kind != "late" for fault in steps.faults(buffer)):
            return None  # wrong on one core too
        if dependence is not None:
            continue
        apart = ((visit.point, (visit.memory, visit.point.indices[axis])) for visit in visits)
        dependence = Simulation(buffer.uses, steps, buffer.flushing).first_unset(apart)
    return dependence


def _axis_meant(buffer: BufferHistory, grid: Grid, axis: int) -> int | None:
    """The one axis that may carry, where the buffer is set under guards on this axis and not on that one."""
    setting = [set(tested_axes(use.guards, grid)) for use in buffer.uses if use.kind == "set"]
    others = [other for other in range(grid.rank) if grid.semantics[other] == "arbitrary" and grid.sizes[other] != 1]
    if not setting or len(others) != 1 or any(tested != {axis} for tested in setting):
        return None
    return others[0]


def _is_set_first(buffer: BufferHistory) -> bool:
    """Whether no step can meet what another one left: nothing is read, or each step begins by setting the buffer."""
    first = buffer.uses[0]
    return (first.kind not in ("read", "update") and not first.guards) or all(
        use.kind not in ("read", "update") for use in buffer.uses
    )
