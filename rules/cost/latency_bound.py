"""PAL801 latency-bound."""

from __future__ import annotations

from pallas_lint.finding import Severity
from pallas_lint.rule import Rule


class LatencyBound(Rule):
    """So little is done in a step of the grid that most of the time goes to the steps themselves.

    A step of the grid costs about as long as it takes to fetch its first byte, 300 to 600 ns, and some dozens of
    cycles for the loop, however small its blocks are. Told by `pallas-lint probe --perf`, of a launch with at least
    eight steps that is further than a factor of two from what the chip could do.

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
    probe_only = True
