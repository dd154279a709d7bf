"""PAL806 mxu-underfilled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.api import Rule, Severity
from pallas_lint.probe.chip_memory import up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost

_MIN_FILLED = 0.75  # of the rows and columns of the matrix unit


class MxuUnderfilled(Rule):
    """A product leaves a part of the matrix unit empty.

    The unit of v4, v5e and v5p has 128 rows and columns, that of v6e and tpu7x 256. The dimension that is contracted
    and the columns of the right operand are filled up to a multiple, and what is filled up takes its time. Reported by
    `pallas-lint probe --perf` of launches bound by computing, in lines that take a fifth of the time, where less than
    three quarters are filled.

    ## How to fix

    Blocks in multiples of the unit. A head of 64 elements cannot be changed; that it costs as much as one of 128 (or
    256) can be known. The rows of the left operand may be any multiple of 8.

    ## How much it matters

    Time of a product of (512, k) and (k, 512) in VMEM, for each k:

    | predicted, against k = 512 | v5e | v6e | tpu7x |
    |---|---|---|---|
    | k = 64 | 2.5 times slower | 4.9 | 5.1 |
    | k = 128 | 1.29 | 2.6 | 2.6 |
    | k = 192 | 1.46 | 1.77 | 1.79 |
    | k = 320 | 1.24 | 1.54 | 1.60 |
    | k = 513 | 1.22 | 1.30 | 1.30 |

    The columns of the right operand matter as much: 64 of them 2.5, 5.3 and 5.5.

    ## Known limits

    In a launch that waits for memory it costs nothing, and is not reported.

    ## References

    - The compiler's table of used slots.
    """

    code = "PAL806"
    name = "mxu-underfilled"
    severity = Severity.INFO
    probe_only = True

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        unit = cost.chip.mxu
        for line in cost.lines("mxu"):
            products = cost.products(line)
            emptiest = min(products, key=lambda product: _filled(product["k"], product["n"], unit), default=None)
            if emptiest is None or any(product["exact"] for product in products):
                continue  # several passes are the larger loss
            k, n = emptiest["k"], emptiest["n"]
            if _filled(k, n, unit) < _MIN_FILLED:
                yield cost.finding(
                    f"{cost.share(line)} products of (m, {k}) and ({k}, {n}), which take as long as ({up(k, unit)}, "
                    f"{up(n, unit)}) would: its matrix unit has {unit} rows and columns",
                    help=f"multiples of {unit} in the dimensions that are contracted, and in those of the right "
                    "operand",
                    place=emptiest["place"],
                )


def _filled(k: int, n: int, unit: int) -> float:
    """The share of the matrix unit's rows and columns that a product uses."""
    return k * n / max(up(k, unit) * up(n, unit), 1)
