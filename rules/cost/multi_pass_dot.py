"""PAL807 multi-pass-dot."""

from __future__ import annotations

from pallas_lint.finding import Severity
from pallas_lint.rule import Rule


class MultiPassDot(Rule):
    """A product in float32 takes several passes of the matrix unit.

    The unit multiplies bfloat16. `precision=HIGHEST` (or `HIGH`) splits float32 operands into three (two) parts of
    bfloat16 and multiplies them with each other. Told by `pallas-lint probe --perf` of launches bound by computing, in
    lines that take a fifth of the time.

    ## How to fix

    Leave `precision` out, or convert the operands to bfloat16, where eight bits of mantissa will do for what is
    multiplied: sums are float32 anyway. Where they will not, keep it: this is the price.

    ## How much it matters

    | predicted, 2048 x 2048, blocks of 512, against DEFAULT | v5e | v6e | tpu7x |
    |---|---|---|---|
    | `HIGHEST` | 2.7 times slower | 1.39 | 2.05 |
    | `HIGH` | 1.41 | 1.05 | 1.30 |
    | `HIGHEST`, operands in VMEM | 5.4 | 4.2 | 4.1 |

    float32 operands with DEFAULT precision cost what bfloat16 costs in the unit (1.03), and twice the bytes.

    ## Known limits

    How many digits are needed is not known; `--reference` compares results.

    ## References

    - https://docs.jax.dev/en/latest/jax.lax.html#jax.lax.Precision
    """

    code = "PAL807"
    name = "multi-pass-dot"
    severity = Severity.INFO
    probe_only = True
