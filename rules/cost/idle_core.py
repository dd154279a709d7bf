"""PAL810 idle-core."""

from __future__ import annotations

from pallas_lint.finding import Severity
from pallas_lint.rule import Rule


class IdleCore(Rule):
    """The launch uses one of the two cores of the chip.

    A v5p has two TensorCores that work as one device: axes of the grid that are said to be parallel are split among
    them. Where none is, the second core waits. Told by `pallas-lint probe --perf` of grids of more than one step.

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
    probe_only = True
