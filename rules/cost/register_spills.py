"""PAL804 register-spills."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


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
