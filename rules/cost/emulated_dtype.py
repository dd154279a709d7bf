"""PAL808 emulated-dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.api import Rule, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.probe.cost_report.launch_cost import CostFinding, LaunchCost


class EmulatedDtype(Rule):
    """Arithmetic in bfloat16 on a TPU that computes in float32.

    The vector units of v4, v5e and v5p know float32 alone. Each operation on bfloat16 converts its operands and rounds
    its result; from v6e on they know bfloat16, and do twice as much at once. Reported by `pallas-lint probe --perf` for
    the chips that do not, of launches bound by computing, in lines that take a fifth of the time.

    ## How to fix

    `x = x_ref[...].astype(jnp.float32)`, compute, and convert what is written. On v6e and tpu7x do not: query the chip.

    ## How much it matters

    | predicted, bfloat16 against float32 inside, 4096 x 2048 | v5e | v6e | tpu7x |
    |---|---|---|---|
    | a chain of 16 multiplications and additions | 2.2 times slower | 0.62 | 0.52 |
    | a chain of 4, which waits for memory | 1.03 | 0.97 | 0.82 |

    ## Known limits

    Whether the rest of the line is what takes its time is not distinguished.

    ## References

    - https://docs.jax.dev/en/latest/pallas/tpu/details.html
    """

    code = "PAL808"
    name = "emulated-dtype"
    severity = Severity.INFO
    probe_only = True

    def check_cost(self, cost: LaunchCost) -> Iterator[CostFinding]:
        for line in () if cost.chip.narrow else cost.lines("valu", "eup"):
            if cost.computes_narrow(line):
                yield cost.finding(
                    f"{cost.share(line)} arithmetic in bfloat16, which {cost.device} does in float32, converting "
                    "before and after",
                    help="convert to float32 once, compute, and convert the result",
                    line=line,
                )
