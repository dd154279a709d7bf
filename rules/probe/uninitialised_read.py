"""PAL907 uninitialised-read."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class UninitialisedRead(Rule):
    """The result depends on memory that was never written.

    Outputs and scratch are not zeroed. In interpret mode the probe fills them with NaN, integers with the largest ones,
    then with zeros: a result that is not the same with both was computed from what happened to lie in the buffer. On a
    device that is whatever the kernel before left there, often enough zeros in a test and something else in production.
    Filling the buffers one by one shows which one it is; the finding is where the kernel first reads it.

    Where it shows only when the steps of `parallel` axes are shared out among cores, or reordered, the kernel may be
    right on a chip with one core: a warning, unless an input block is read there that no result depends on.

    ## How to fix

    Write the buffer before it is read, on the first visit of each block: under `pl.when` for the axis that is reduced
    over (PAL401, PAL402).

    ## Known limits

    What partial blocks read past the end of an array is PAL413. Which buffer it is can be determined for TPU kernels,
    where jax has the TPU interpreter.

    ## References

    - `interpret=True` and `pltpu.InterpretParams(uninitialized_memory=...)` on jax 0.4.35 to 0.12.0.
    """

    code = "PAL907"
    name = "uninitialised-read"
    severity = Severity.ERROR
    probe_only = True
