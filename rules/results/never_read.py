"""PAL420 never-read."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class NeverRead(Rule):
    """Blocks of an input that is summed over are never read.

    The probe evaluates the index maps on the whole grid. Where a grid axis walks over the blocks of an input from the
    first one on, and no output depends on that axis, the axis is a reduction: if it stops before the last block, the
    rest of the array is left out of the result, silently.

    ## How to fix

    Make the grid as long as the array has blocks: `pl.cdiv(size, block)`. Slice the operand where the rest is left out
    on purpose.

    ## Known limits

    An input is not checked if its index map reads prefetch operands, starts behind the first block, or stays at one; if
    it is aliased to an output; if another operand of its type has the other blocks; or if an output has no blocks of
    its own, as in HBM.
    """

    code = "PAL420"
    name = "never-read"
    severity = Severity.WARNING
    probe_only = True
