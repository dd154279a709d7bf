"""PAL801 latency-bound."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pallas_lint.api import Access, Context, Example, Finding, KernelTrace, Op, Rule, Severity, blocks_of
from pallas_lint.kernels.facts.buffer_uses import holds_pipelines
from pallas_lint.kernels.facts.memory_budget import size

_STEPS = 256  # of fewer a tenth of a millisecond is at stake, at most
_SMALL = 32 << 10  # bytes: they move within 40 ns on the slowest chip


class LatencyBound(Rule):
    """So little is done in a step of the grid that most of the time goes to the steps themselves.

    A step of the grid costs about as long as it takes to fetch its first byte, 300 to 600 ns, and some dozens of
    cycles for the loop, however small its blocks are. Reported by `pallas-lint probe --perf` for a launch with at least
    eight steps that is further than a factor of two from what the chip could do; and of the text, where a step of at
    least 256 moves no more than 32 KiB and its kernel has no loop.

    ## How to fix

    Larger blocks: `pallas-lint probe --tune bm=128,256,512` tries sizes. Or do the work of several steps in one, in a
    loop inside the kernel.

    ## How much it matters

    | predicted | v5e | v6e | tpu7x |
    |---|---|---|---|
    | `x * 2` in blocks of (8, 128) against (512, 512), 4096 x 4096 | 28 times slower | 55 | 122 |
    | layer norm of (8192, 1024), 8 rows a block against 256 | 4.5 | 8.5 | 17 |

    ## Known limits

    How long the first byte takes is not published: the range of a prediction is that of 300 to 600 ns. A chip with much
    to do in other launches may hide some of it.

    ## References

    - Predictions of v6e matmuls with this model: median error 0.6 % against 46 published times.
    """

    code = "PAL801"
    name = "latency-bound"
    severity = Severity.INFO
    backends = frozenset({"tpu"})
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
        if not launch.form.is_over_blocks or launch.interpret or _has_work_of_its_own(trace, context):
            return
        blocks = blocks_of(launch, context.analysis)
        sizes = blocks.grid.literal if blocks is not None else None
        if blocks is None or sizes is None or math.prod(sizes) < _STEPS:
            return
        if blocks.inputs is None or not blocks.outputs:
            return
        moved = [block.bytes if block is not None else None for block in (*blocks.inputs, *blocks.outputs)]
        total = sum(each for each in moved if each is not None)
        if None in moved or total > _SMALL:
            return
        yield context.finding(
            launch.called_at,
            f"{math.prod(sizes)} steps of the grid that move {size(total)} each: a step itself takes about as long as "
            "moving half a megabyte",
            help="larger blocks make fewer steps; `pallas-lint probe --perf` predicts the time, `--tune` tries sizes",
        )


def _has_work_of_its_own(trace: KernelTrace, context: Context) -> bool:
    """Whether a step may do more than its blocks are large: loops, copies, pipelines, pieces that are not known."""
    if holds_pipelines(trace, context.analysis):
        return True
    guards = (guard for event in trace.events if isinstance(event, Op | Access) for guard in event.guards)
    names = (event.name for event in trace.events if isinstance(event, Op))
    return any(guard.kind == "loop" for guard in guards) or any("copy" in name or "pipeline" in name for name in names)
