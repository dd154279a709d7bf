"""PAL911 device-race."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class DeviceRace(Rule):
    """A copy is still in flight while another access uses its source or destination.

    The probe unrolls the kernel for each device of its mesh. A copy and an access can happen at the same time if the
    access can be reached without the copy's completion, and the copy's start without the access. That covers every
    order of all devices, also those that no run of an interpreter has shown. The same holds for a copy that is still
    under way when a device leaves the kernel: what it writes then is no longer the kernel's.

    It is an error where the race is there even if the copies from one device to one other arrive in the order in which
    they began, and a warning where one has to overtake another: on which order one may rely is not documented.

    ## How to fix

    Wait for the copy before its destination is read: `wait_recv` on the device that receives, `wait_send` before its
    source is overwritten. Where a slot is used again, have its reader signal a regular semaphore of the sender ("there
    is room"), and the sender wait for it. One semaphore for several copies does not show which of them arrived: give
    each step or slot its own.

    ## Known limits

    Accesses at indices that depend on data are left out (the stage counts them). A wait counts the bytes of the
    reference that it names, as in jax's interpreter; that was not measured on hardware.

    ## References

    - `pltpu.InterpretParams(detect_races=True)` sees the race of one run; four runs of one kernel gave four answers.
    """

    code = "PAL911"
    name = "device-race"
    severity = Severity.ERROR
    probe_only = True
