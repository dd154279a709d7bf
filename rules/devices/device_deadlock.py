"""PAL910 deadlock."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class Deadlock(Rule):
    """A device waits for a semaphore that is never raised far enough.

    On hardware the kernel hangs, and with it every device that waits for this one. The probe traces the launch inside
    its `shard_map`, unrolls it for each device of the mesh, and runs the devices against each other. Only its own
    device lowers a semaphore, so all runs end in the same place: one of them decides. The message names which device
    waits where, for how much, and what it gets; the stage's `trace` has what was signalled and copied until then.

    ## How to fix

    Count who signals. A barrier with both neighbours waits for 2; a device that sends must be waited for by the one
    that receives, and every copy that is waited for must have been started by some device, with as many bytes.

    ```python
    barrier = pltpu.get_barrier_semaphore()
    for neighbour in (left, right):
        pl.semaphore_signal(barrier, 1, device_id=neighbour, device_id_type=pl.DeviceIdType.LOGICAL)
    pl.semaphore_wait(barrier, 2)
    ```

    ## Known limits

    Kernels whose branches, devices or counts depend on data that the probe is not given are not checked; the stage says
    what stands in the way, and in which line. Several cores of one device and SparseCores are not modelled.

    ## References

    - jax's TPU interpreter hangs in these cases; libtpu compiles all of them (v5e 2x2, jax 0.12.0).
    """

    code = "PAL910"
    name = "device-deadlock"
    severity = Severity.ERROR
    probe_only = True
