"""Single operations that no kernel can have for a dtype: casts, shifts and arithmetic of narrow dtypes.

By `tools/measure/operations.py` compiled with libtpu for each generation of TPUs, lowered for Triton and Mosaic GPU,
and with jax 0.11.2 run on an H200; what later releases lower ends as it did there.
"""

from __future__ import annotations

import functools

from pallas_lint.compat import tables
from pallas_lint.compat.outcomes import SupportStatus
from pallas_lint.compat.versions import parse, position

_OUTCOMES = {
    "lower": SupportStatus.LOWER,
    "compile": SupportStatus.COMPILE,
    "abort": SupportStatus.ABORT,
    "wrong": SupportStatus.WRONG,
}
_GPUS = ("triton", "mosaic_gpu")


def operation_failure(
    operation: str, dtype: str, backend: str, device: str | None, version: str
) -> SupportStatus | None:
    """How a kernel with `operation` ("add", "shift_right", "cast:bf16") on this dtype fails; None where it may not.

    Without a device, only what fails on all TPUs that were measured. A release between two measured ones fails where
    both do; nothing is known of releases before the first.
    """
    if backend not in ("tpu", *_GPUS) or device == "rocm":
        return None
    measured = tuple(tables.operations())
    index = position(version, measured)
    if index is None:
        return None
    exact = parse(measured[index]) == parse(version) or index == len(measured) - 1
    around = measured[index : index + (1 if exact else 2)]
    found = [_outcome(operation, dtype, device if backend == "tpu" else backend, each) for each in around]
    return found[0] if None not in found else None


@functools.cache
def _outcome(operation: str, dtype: str, device: str | None, version: str) -> SupportStatus | None:
    devices = tables.operations()[version]
    chosen = (device,) if device is not None else [each for each in devices if each not in _GPUS]
    of_devices = [
        next(
            (_OUTCOMES[name] for name, held in devices[each].items() if dtype in held.get(operation, "").split()), None
        )
        for each in chosen
        if each in devices
    ]
    return of_devices[0] if of_devices and None not in of_devices else None
