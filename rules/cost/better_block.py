"""PAL811 better-block."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class BetterBlock(Rule):
    """`--tune` found block sizes that are clearly faster than those that the function has now.

    Those are the values that the call gives, or the defaults in the function's signature. Reported by `pallas-lint
    probe --tune` where another choice is predicted to be at least 5 % faster.

    ## How to fix

    Write the better values into the signature, or into what calls it.

    ## How much it matters

    | predicted | v5e | v6e | tpu7x |
    |---|---|---|---|
    | matmul of 4096 x 4096, bfloat16: blocks of 512, k in 256s, against 1024 and 512s | 1.41 times slower | 2.6 | 2.9 |
    | flash attention of 4 x 8 heads, 2048 x 128: blocks of 128 (its default) against 1024 | 8.1 | 15 | 11 |

    ## Known limits

    For the shapes that were tried. Choices within 1 % of each other are ties.

    ## References

    - Predictions of v6e matmuls with this model: rank correlation 0.996 with 46 published times.
    """

    code = "PAL811"
    name = "better-block"
    severity = Severity.INFO
    probe_only = True
