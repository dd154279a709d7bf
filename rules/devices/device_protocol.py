"""PAL912 device-protocol."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class DeviceProtocol(Rule):
    """A kernel on several devices leaves something behind, or reaches for a device that is not ready.

    Three things, all of which run well now and then:

    - **A semaphore is not zero at the end.** The next kernel that is given it takes that for a signal of its own. The
      barrier semaphore is shared by all kernels with the same `collective_id`.
    - **A device that is not there** is signalled or copied to: `me + 1` on the last device. An error.
    - **A device may not have begun the kernel** when another writes into its memory or signals it, since the barrier
      does not wait for it; or, in the second of two launches in a row, may still be in the first.

    ## How to fix

    Wait for as much as is signalled. Take devices modulo the size of the axis: `lax.rem(me + 1, n)`, and
    `lax.rem(me - 1 + n, n)` for the other direction, since `lax.rem` of a negative number is negative. Before the first
    copy, wait at the barrier for a signal of each device that this one copies to.

    ## Known limits

    Kernels without a barrier are not checked for whether the others have begun: where launches cannot be apart, none is
    needed. Two launches in a row are looked at where the first one leaves all semaphores at zero.

    ## References

    - jax's TPU interpreter prints "non-zero count" for what is left, and goes on; libtpu compiles all of it.
    """

    code = "PAL912"
    name = "device-protocol"
    severity = Severity.WARNING
    probe_only = True
