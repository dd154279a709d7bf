"""PAL908 mismatch."""

from __future__ import annotations

from pallas_lint.finding import Severity
from pallas_lint.rule import Rule


class Mismatch(Rule):
    """The kernel's result is not that of the function that it is compared with.

    `--reference FUNCTION` names a function of the same file that takes the same arguments. Both run on the same random
    operands, the kernels in interpret mode, and results may differ by the rounding of their dtype: 2e-3 of the value
    for float32, 5e-2 for bfloat16, nothing for integers.

    ## How to fix

    The message tells how many values differ and the first of them; the probe's other findings often tell why.

    ## Known limits

    Interpret mode computes as the CPU does: what only the device does differently does not show.

    ## References

    - Compared on jax 0.4.35 to 0.12.0.
    """

    code = "PAL908"
    name = "mismatch"
    severity = Severity.ERROR
    probe_only = True
