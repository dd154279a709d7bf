"""PAL308 outputs-not-covered."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class OutputsNotCovered(Rule):
    """Blocks of an output that no grid point writes.

    The grid and the output's index map decide which blocks are written. A grid that is too small, or an index map that
    gives one block for several grid points, leaves others as the memory was: in interpret mode NaN, on a device
    whatever lay there before.

    Only the probe finds it, since the grid and the shapes have to be numbers: it evaluates the index map at every grid
    point and counts.

    ## How to fix

    Make the grid `pl.cdiv(size, block)` in each dimension that the index map uses. Where only some blocks are meant to
    change, alias an input that holds the others with `input_output_aliases`.

    ## Known limits

    Silent where the index map reads a prefetch operand whose values are not known, and for outputs that alias an input.

    ## References

    - `interpret=True` on jax 0.4.35 to 0.12.0: the blocks that are left out hold NaN.
    """

    code = "PAL308"
    name = "outputs-not-covered"
    severity = Severity.WARNING
    probe_only = True
