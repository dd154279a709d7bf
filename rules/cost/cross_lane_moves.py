"""PAL805 cross-lane-moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.api import Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost


class CrossLaneMoves(Rule):
    """A line of the kernel spends its time on moving values to other lanes.

    A vector register has 8 sublanes of 128 lanes. What has to change lanes goes through one unit, a register at a time:
    slices and concatenations that begin between multiples of 128, reshapes that split or join the last dimension, and
    transposes. Reported by `pallas-lint probe --perf` for launches that are bound by computing, in lines that take a
    fifth of the time and use that unit most.

    ## How to fix

    Begin slices and parts at multiples of 128; reshape before the launch; have a dot contract the other dimension, or
    an index map exchange blocks, instead of transposing.

    ## How much it matters

    | predicted, where computing is what takes the time | v5e | v6e | tpu7x |
    |---|---|---|---|
    | a lane shift or concatenation that is not aligned | 2.5 to 3.3 times slower | 3.4 to 4.3 | 3.7 to 4.5 |
    | a transpose in the kernel | 2.8 | 3.4 | 3.6 |
    | a reshape that splits lanes | 2.1 | 2.3 | 2.4 |

    In a launch that waits for memory they are free: the same transpose in blocks of (512, 512) costs 1.00, 1.00, 1.09.
    Sums along the last axis, masks and sublane strides cost next to nothing: 0.95 to 1.2.

    ## Known limits

    What is issued between two lines counts for the second one: the compiler mixes them.

    ## References

    - The compiler's table of used slots.
    """

    code = "PAL805"
    name = "cross-lane-moves"
    severity = Severity.INFO
    probe_only = True

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        for line in cost.lines("xlu"):
            yield cost.finding(
                f"{cost.share(line)} moving values across lanes",
                help="slices, concatenations and reshapes at multiples of 128 move nothing; nor do transposes that a "
                "dot or an index map makes",
                line=line,
            )
