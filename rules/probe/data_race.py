"""PAL905 data-race."""

from __future__ import annotations

from pallas_lint.api import Rule, Severity


class DataRace(Rule):
    """Two accesses of one buffer happen in no order, and one of them writes.

    jax's interpreters for TPU and Mosaic GPU keep a clock for every thread of a kernel: cores, DMA engines, warpgroups.
    Two accesses of which neither comes before the other by a semaphore, a barrier or program order race: on the device,
    either may come first.

    A warning is what the GPU interpreter reports of barriers and copies that are not awaited correctly: `Barrier
    completed phase 1, but no threads observed phase 0` where two copies arrive on a barrier for one, `Not all
    copy_smem_to_gmem read-side operations completed before kernel finished` where nothing waits for a copy.

    ## How to fix

    Wait for a copy before its destination is read, and for what reads a buffer before it is overwritten. Grid axes over
    which an output is summed must be `"arbitrary"` (PAL404).

    ## Known limits

    Only the accesses of one run are seen, on random operands. TPU interpreters find races between cores since jax 0.6,
    and say where since 0.8; Mosaic GPU's come with jax 0.11.

    ## References

    - `pltpu.InterpretParams(detect_races=True)`, jax 0.6.2 to 0.12.0.
    """

    code = "PAL905"
    name = "data-race"
    severity = Severity.ERROR
    probe_only = True
