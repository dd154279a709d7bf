"""PAL809 scalar-loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.api import Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost


class ScalarLoop(Rule):
    """A loop over single rows does what vectors would do at once.

    A register has eight rows (sublanes). A loop that reads, computes and writes one row leaves seven of them empty, and
    waits in each turn for what the last one began. Reported by `pallas-lint probe --perf` for launches bound by
    computing, in lines that take a fifth of the time.

    ## How to fix

    Compute with the whole block, or in a loop over `pl.ds(i * 8, 8)`. Where a row depends on the one before (a scan),
    compute all rows' parts that do not before the loop.

    ## How much it matters

    | predicted, rows of 512 against the whole block | v5e | v6e | tpu7x |
    |---|---|---|---|
    | `x * 2` of (512, 512) in VMEM | 13 times slower | 22 | 29 |
    | `x * 2 + 1` of rows of 2048, from HBM | 1.01 | 1.06 | 1.51 |

    The second one is why the text alone decides nothing: memory may be slower still.

    ## Known limits

    Loops whose turns depend on each other cannot be taken together.

    ## References

    - https://docs.jax.dev/en/latest/pallas/tpu/details.html
    """

    code = "PAL809"
    name = "scalar-loop"
    severity = Severity.INFO
    probe_only = True

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        for line in cost.lines():
            if cost.takes_single_rows(line):
                yield cost.finding(
                    f"{cost.share(line)} a loop over single rows: seven of the eight sublanes of each register are "
                    "idle",
                    help="compute with the whole block, or with eight rows at a time",
                    line=line,
                )
