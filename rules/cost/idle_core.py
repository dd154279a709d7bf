"""PAL810 idle-core."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pallas_lint.api import Context, Example, Finding, Launch, Rule, Severity, blocks_of

if TYPE_CHECKING:
    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost

_TWO_CORES = ("v5p",)  # that libtpu gives both to one launch


class IdleCore(Rule):
    """The launch uses one of the two cores of the chip.

    A v5p has two TensorCores that work as one device: axes of the grid that are marked `parallel` are split among
    them. Where none is, the second core waits. Reported where the target is `tpu:v5p`, of grids of more than one step:
    of the text, where an axis moves the blocks of all outputs, and by `pallas-lint probe --perf`.

    ## How to fix

    `compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", ...))`, for axes along which no step needs
    what another one wrote.

    ## How much it matters

    | predicted | v5p |
    |---|---|
    | a matmul of 4096 x 4096, bfloat16, without `parallel` (723 µs) against one with it (362 µs) | 2.0 times slower |

    ## Known limits

    Other chips have one core, or cores that are devices of their own. For v4, which has two, libtpu 0.0.42 and 0.0.50
    compile launches for one, whatever their axes are.

    ## References

    - https://docs.jax.dev/en/latest/pallas/tpu/pipelining.html
    """

    code = "PAL810"
    name = "idle-core"
    severity = Severity.INFO
    backends = frozenset({"tpu"})
    invalid = (
        Example(
            """
            def kernel(x_ref, o_ref):
                o_ref[...] = x_ref[...] * 2.0

            def double(x):
                block = pl.BlockSpec((256, 1024), lambda i: (i, 0))
                return pl.pallas_call(  #!
                    kernel,
                    grid=(4,),
                    in_specs=[block],
                    out_specs=block,
                    out_shape=jax.ShapeDtypeStruct((1024, 1024), jnp.float32),
                    compiler_params=pltpu.CompilerParams(),
                )(x)
            """,
            target="tpu:v5p",
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
                    compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
                )(x)
            """,
            target="tpu:v5p",
        ),
    )

    def check_launch(self, launch: Launch, context: Context) -> Iterator[Finding]:
        device = context.device
        if device not in _TWO_CORES or not launch.form.is_over_blocks or launch.interpret:
            return
        blocks = blocks_of(launch, context.analysis)
        if blocks is None or not blocks.outputs or any(name != "arbitrary" for name in blocks.grid.semantics):
            return
        for axis, size in enumerate(blocks.grid.sizes):
            moves = all(block is not None and block.ignores(axis) is False for block in blocks.outputs)
            if moves and isinstance(size, int) and size > 1:
                yield context.finding(
                    launch.called_at,
                    f"one of the two cores of {device} is idle: no axis of the grid is marked parallel",
                    help=f'mark axis {axis} "parallel" in `dimension_semantics`, if no step needs what another wrote',
                    device=device,
                )
                return

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        if "parallel" not in cost.semantics and cost.chip.cores > cost.figures["cores"] and math.prod(cost.grid) > 1:
            yield cost.finding(
                f"one of the two cores of {cost.device} is idle: no axis of the grid is marked parallel",
                help='dimension_semantics=("parallel", ...) for axes along which no step needs what another one wrote',
            )
