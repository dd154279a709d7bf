"""PAL804 register-spills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.api import Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost

_MIN_SPILLED = 0.1  # of the stores
_MIN_SLOTS = 0.05  # of all store slots, taken by what is spilled
_MATRIX_UNIT_BUSY = 0.8  # of its time: nothing beside it matters


class RegisterSpills(Rule):
    """More than a tenth of the stores only save registers, since a step holds more than there are.

    A TensorCore has 64 vector registers of 4 KiB: a block of (128, 512) in float32 fills them. What does not fit is
    stored to VMEM and loaded again. Reported by `pallas-lint probe --perf` for launches that are bound by computing,
    where these stores take at least a twentieth of all store slots and the matrix unit is not busy anyway.

    ## How to fix

    Do less at a time: smaller blocks, or a `fori_loop` over parts of a block, each of which is loaded, computed and
    stored before the next.

    ## How much it matters

    Of jax's flash attention (4 x 8 heads, 2048 x 128) with blocks of 1024, 45 % of the stores are spills, and it is
    still the fastest of its sizes: what blocks save may be worth more. `--tune` shows it.

    ## Known limits

    Spills of scalars and predicates do not count.

    ## References

    - The compiler's own count, by bundle.
    """

    code = "PAL804"
    name = "register-spills"
    severity = Severity.INFO
    probe_only = True

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        spilled, units = cost.figures["spills"], cost.figures["units"]
        if cost.figures["bound"] != "compute" or spilled <= _MIN_SPILLED or units.get("mxu", 0.0) >= _MATRIX_UNIT_BUSY:
            return
        if spilled * units.get("store", 0.0) > _MIN_SLOTS:
            yield cost.finding(
                f"{spilled:.0%} of the stores only save registers that run out",
                help="less at a time: smaller blocks, or a loop over parts of a block",
            )
