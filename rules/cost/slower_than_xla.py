"""PAL812 slower-than-xla."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class SlowerThanXla(Rule):
    """A function with kernels is predicted to be slower than another one that computes the same in plain jax.

    `pallas-lint probe --against FUNCTION` compiles both functions as they stand, and adds up what their kernels and
    XLA's own operations take. Reported where the whole range of the one is above the whole range of the other.

    ## How to fix

    Look at the operations of both, which `--perf` lists by their share: XLA may fuse what stands around a kernel with
    what the kernel does, and copies that change a layout for a kernel cost as much as the kernel.

    ## Known limits

    For the shapes that were given. Results are not compared: `--reference` does that.
    """

    code = "PAL812"
    name = "slower-than-xla"
    severity = Severity.INFO
    probe_only = True
