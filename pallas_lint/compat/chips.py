"""TPU generations: what a TensorCore has, and since which jax release there is one to lower for.

Capacities and sublanes are those of jax's own table (`jax._src.tpu_info` of 0.12.0.1); the default limits of VMEM are
in the errors of libtpu.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.versions import parse
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

_MIB = 2**20
LANES = 128  # of every generation
SUBLANES = 8  # of most generations, and where none is named


@frozen
class Chip:
    """One generation; memory in bytes of a core."""

    generation: int
    vmem: int
    default_vmem: int | None  # that a kernel gets without `vmem_limit_bytes`; None where libtpu has no such chip yet
    sublanes: int = SUBLANES
    since: str | None = None  # the first jax release that lowers for it; None: all that are known

    @property
    def compiles(self) -> bool:
        """Whether libtpu, up to the newest that was measured, compiles for it."""
        return self.default_vmem is not None


CHIPS: dict[str, Chip] = {
    "v4": Chip(4, 16 * _MIB, 16 * _MIB),
    "v5e": Chip(5, 128 * _MIB, 16 * _MIB),
    "v5p": Chip(5, 64 * _MIB, 16 * _MIB),
    "v6e": Chip(6, 128 * _MIB, 32 * _MIB),
    "tpu7x": Chip(7, 64 * _MIB, 32 * _MIB),
    "tpu8i": Chip(8, 192 * _MIB, None, since="0.10.2"),
    "tpu8t": Chip(8, 128 * _MIB, None, sublanes=16, since="0.11.1"),
}


def sublanes(device: str | None) -> int:
    """Rows of 32-bit numbers in a vector register of the device, a TPU or not."""
    chip = CHIPS.get(device or "")
    return chip.sublanes if chip is not None else SUBLANES


def compiles_for(device: str | None) -> bool:
    """Whether libtpu was asked what it compiles for the device; True of GPUs, and where no device is named."""
    chip = CHIPS.get(device or "")
    return chip is None or chip.compiles


def knowing(device: str | None, versions: Iterable[str]) -> tuple[str, ...]:
    """Those of the jax versions that have the device."""
    chip = CHIPS.get(device or "")
    if chip is None or chip.since is None:
        return tuple(versions)
    since = parse(chip.since)
    return tuple(version for version in versions if parse(version) >= since)
