"""PAL803 refetched-block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.api import Rule, Severity
from pallas_lint.probe.byte_sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost


class RefetchedBlock(Rule):
    """The order of the grid's axes fetches a block again that another order keeps.

    A block stays in VMEM as long as the index map gives the same one for step after step; the last axis of the grid
    runs fastest. An operand that does not use it stays, one that does not use an outer axis is fetched again and again.
    Reported by `pallas-lint probe --perf` for launches that wait for memory, where another order of the axes moves a
    fifth less and visits each block of the results as often as now.

    ## How to fix

    Exchange the axes of the grid, and with them the parameters of every index map and the kernel's `program_id`s:

    ```python
    # w depends on j alone: with j outside it is fetched once for each j
    grid=(n // bn, m // bm),
    in_specs=[pl.BlockSpec((bm, bn), lambda j, i: (i, j)), pl.BlockSpec((8, bn), lambda j, i: (0, j))],
    ```

    ## How much it matters

    | predicted | v5e | v6e | tpu7x |
    |---|---|---|---|
    | `x * b`, blocks of (512, 128), b fetched 128 times against 8 | 1.44 times slower | 1.20 | 1.06 |

    ## Known limits

    Only where no step needs what another one left in scratch: the probe sees which blocks a step has, not what it
    keeps.

    ## References

    - https://docs.jax.dev/en/latest/pallas/pipelining.html
    """

    code = "PAL803"
    name = "refetched-block"
    severity = Severity.INFO
    probe_only = True

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        order = cost.better_order
        if cost.figures["bound"] == "memory" and order is not None:
            yield cost.finding(
                f"{order['operand']} is fetched {order['fetched']} times, and {order['would']} times would do: another "
                f"order of the grid's axes moves {format_bytes(order['then'])} instead of {format_bytes(order['now'])}",
                help=f"the axes in the order {tuple(order['axes'])}, outermost first, keep blocks for longer; not "
                "where a step needs what another one left",
            )
