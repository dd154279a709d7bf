"""PAL802 memory-bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.api import Rule, Severity
from pallas_lint.probe.byte_sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost


class MemoryBound(Rule):
    """Most of the time goes to waiting for memory, and more bytes are moved than operands and results have.

    A block is fetched again whenever its index changes: an operand of which every row of the grid needs all is fetched
    once a row. Reported by `pallas-lint probe --perf` where a launch is bound by memory and moves at least a quarter
    more than each operand and result once.

    ## How to fix

    Larger blocks, along the axis that others are walked by; or an order of the grid in which the larger block stays the
    same for longer, since what stays the same is not fetched.

    ## How much it matters

    | predicted | v5e | v6e | tpu7x |
    |---|---|---|---|
    | an order of the grid that fetches a block again, against one that keeps it | 1.45 times slower | 1.20 | 1.00 |

    ## Known limits

    Copies within the core are timed roughly. Bandwidth is taken to be 80 to 95 % of the published one.

    ## References

    - A paged attention of jax's: 33,554,944 bytes read by this model, 33,554,432 and 512 of scalars needed.
    """

    code = "PAL802"
    name = "memory-bound"
    severity = Severity.INFO
    probe_only = True

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        if cost.figures["bound"] == "memory" and cost.exceeds_ideal and cost.better_order is None:
            moved, ideal = format_bytes(cost.moved), format_bytes(cost.figures["bytes"]["ideal"])
            yield cost.finding(
                f"most of {cost.time} is waiting for memory: {moved} are moved, and {ideal} would do",
                help="larger blocks fetch less again",
            )
