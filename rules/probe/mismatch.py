"""PAL908 mismatch."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class Mismatch(Rule):
    """The kernel's result is not that of the function that it is compared with.

    `--reference FUNCTION` names a function of the same file that takes the same arguments. Both run on the same random
    operands, the kernels in interpret mode, and results may differ by the rounding of their dtype: 2e-3 of the value
    for float32, 5e-2 for bfloat16, nothing for integers.

    With `--run` it is the GPU or TPU of this machine that is compared with interpret mode: a kernel that computes
    something else there, fails, or does not come to an end. It is a warning where the launch does not name which device
    it is for: a grid that TPUs go through in order runs all at once on a GPU.

    ## How to fix

    The message has the number of different values and the first of them; the probe's other findings often show why.

    ## Known limits

    Interpret mode computes as the CPU does: without `--run`, what only the device does differently does not show. Where
    several values of an atomic operation meet, jax's interpreters keep one: such kernels are not compared.

    ## References

    - Compared on jax 0.4.35 to 0.12.0; run on an NVIDIA H200 with jax 0.11.2.
    """

    code = "PAL908"
    name = "mismatch"
    severity = Severity.ERROR
    probe_only = True
