"""PAL801 latency-bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import (
    Access,
    Array,
    Context,
    Example,
    Finding,
    KernelTrace,
    Op,
    Ref,
    Rule,
    Seq,
    Severity,
    Value,
    blocks_of,
)
from pallas_lint.kernels.facts.buffer_uses import holds_pipelines
from pallas_lint.kernels.model.known_names import is_integer
from pallas_lint.probe.byte_sizes import format_bytes

if TYPE_CHECKING:
    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost

_MIN_STEPS = 8  # steps; of fewer nothing can be saved by making them larger
_AROUND = 0.25  # of the time, spent around the lines of the kernel
_MAX_FACTOR = 2.0  # times the limit of the chip
_STEPS = 256  # of fewer a tenth of a millisecond is at stake, at most
_PROGRAMS = 65_536  # of fewer some dozens of microseconds are at stake on a GPU
_MANY_PROGRAMS = 262_144  # a tenth of a millisecond and more, for work of a microsecond
_SMALL = 32 << 10  # bytes: they move within 40 ns on the slowest chip


class LatencyBound(Rule):
    """So little is done in a step of the grid that most of the time goes to the steps themselves.

    A step of the grid costs about as long as it takes to fetch its first byte, 300 to 600 ns, and some dozens of
    cycles for the loop, however small its blocks are. Reported by `pallas-lint probe --perf` for a launch with at least
    eight steps that is further than a factor of two from what the chip could do; and of the text, where a step of at
    least 256 moves no more than 32 KiB and its kernel has no loop.

    On Triton, a program of the grid is a whole block of threads. One that works on single elements leaves all threads
    but one idle: reported for grids of at least 65,536 programs whose kernel loads and stores nothing larger, as a
    warning from 262,144 on.

    ## How to fix

    Larger blocks: `pallas-lint probe --tune bm=128,256,512` tries sizes. Or do the work of several steps in one, in a
    loop inside the kernel.

    ## How much it matters

    | predicted | v5e | v6e | tpu7x |
    |---|---|---|---|
    | `x * 2` in blocks of (8, 128) against (512, 512), 4096 x 4096 | 28 times slower | 55 | 122 |
    | layer norm of (8192, 1024), 8 rows a block against 256 | 4.5 | 8.5 | 17 |

    `x * 2 + 1` of 256 x 256 x 256 float32, jax 0.11.2 on an H200: 10.1 ms in programs of one element, 0.05 ms in rows
    of 256 or blocks of 1024, and by XLA.

    ## Known limits

    How long the first byte takes is not published: the range of a prediction is that of 300 to 600 ns. A chip with much
    to do in other launches may hide some of it.

    ## References

    - Predictions of v6e matmuls with this model: median error 0.6 % against 46 published times.
    """

    code = "PAL801"
    name = "latency-bound"
    severity = Severity.INFO
    backends = frozenset({"tpu", "triton"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
                return pl.pallas_call(  #!
                    kernel,
                    grid=(128, 8),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)

            double(jnp.zeros((1024, 1024), jnp.float32))
            """
        ),
        Example(
            """
            from jax.experimental.pallas import triton as plgpu

            def kernel(x_ref, o_ref):
                i, j = pl.program_id(0), pl.program_id(1)
                o_ref[i, j] = x_ref[i, j] * 2.0

            def double(x):
                return pl.pallas_call(
                    kernel,
                    grid=(1024, 1024),  #!
                    out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
                    compiler_params=plgpu.CompilerParams(),
                )(x)
            """
        ),
    )
    valid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                block = pl.BlockSpec((256, 1024), lambda i: (i, 0))
                return pl.pallas_call(
                    kernel,
                    grid=(4,),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)

            double(jnp.zeros((1024, 1024), jnp.float32))
            """
        ),
    )

    def check_kernel(self, trace: KernelTrace, context: Context) -> Iterator[Finding]:
        launch = trace.launch
        blocks = blocks_of(launch, context.analysis)
        sizes = blocks.grid.literal if blocks is not None else None
        if blocks is None or sizes is None or not launch.form.is_over_blocks or launch.interpret:
            return
        if launch.backend == "triton":
            yield from _single_elements(trace, math.prod(sizes), context)
            return
        if math.prod(sizes) < _STEPS or _has_work_of_its_own(trace, context):
            return
        if blocks.inputs is None or not blocks.outputs:
            return
        moved = [block.bytes if block is not None else None for block in (*blocks.inputs, *blocks.outputs)]
        total = sum(each for each in moved if each is not None)
        if None in moved or total > _SMALL:
            return
        yield context.finding(
            launch.called_at,
            f"{math.prod(sizes)} steps of the grid that move {format_bytes(total)} each: a step itself takes about as "
            "long as moving half a megabyte",
            help="larger blocks make fewer steps; `pallas-lint probe --perf` predicts the time, `--tune`, in an editor "
            "Tune Block Sizes, tries sizes",
        )

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        around = sum(line["share"] for line in cost.figures["lines"] if line["path"] is None)
        steps, is_near = cost.figures["steps"], cost.reached * _MAX_FACTOR >= 1
        if cost.figures["bound"] == "latency" and around >= _AROUND and steps >= _MIN_STEPS and not is_near:
            yield cost.finding(
                f"{around:.0%} of {cost.time} are the cost of {steps} steps themselves: one takes {cost.step_time}, "
                f"with {format_bytes(cost.moved / steps)} to move",
                help="give each step more to do: larger blocks make fewer steps (`--tune`, in an editor Tune Block "
                "Sizes, tries sizes)",
            )


def _single_elements(trace: KernelTrace, programs: int, context: Context) -> Iterator[Finding]:
    """A grid of which each program, a block of threads, has work for one thread."""
    if programs >= _PROGRAMS and _works_on_single_elements(trace):
        yield context.finding(
            trace.launch.argument_site("grid"),
            f"{programs:,} programs that work on single elements: each is a block of threads, of which one has"
            " something to do",
            help="let a program work on a block of some hundred elements",
            severity=Severity.WARNING if programs >= _MANY_PROGRAMS else None,
        )


def _works_on_single_elements(trace: KernelTrace) -> bool:
    """Whether everything that the kernel loads and stores is a single element."""
    accesses = list(trace.accesses())
    return bool(accesses) and all(
        access.kind in ("load", "store", "accumulate")
        and (_is_scalar_index(access.index) or _has_one_element(access.ref))
        for access in accesses
    )


def _has_one_element(ref: Ref) -> bool:
    return ref.shape is not None and all(size == 1 for size in ref.shape)


def _is_scalar_index(index: Value) -> bool:
    parts = index.items if isinstance(index, Seq) and not index.open else (index,)
    return all(is_integer(part) or (isinstance(part, Array) and part.shape == ()) for part in parts)


def _has_work_of_its_own(trace: KernelTrace, context: Context) -> bool:
    """Whether a step may do more than its blocks are large: loops, copies, pipelines, pieces that are not known."""
    if holds_pipelines(trace, context.analysis):
        return True
    guards = (guard for event in trace.events if isinstance(event, Op | Access) for guard in event.guards)
    names = (event.name for event in trace.events if isinstance(event, Op))
    return any(guard.kind == "loop" for guard in guards) or any("copy" in name or "pipeline" in name for name in names)
