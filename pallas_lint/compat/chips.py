"""TPU generations: their TensorCores and SparseCores, and the first jax release that lowers for each.

VMEM, lanes and sublanes are those that the probe's worker has, of `pallas_lint.probe.chip_memory`; the SMEM of subcores
is in the errors of libtpu.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.compat.versions import parse
from pallas_lint.probe.chip_memory import LANES as LANES
from pallas_lint.probe.chip_memory import SUBLANES, SUBLANES_OF, VMEM
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

_KIB = 2**10


# SMEM of a subcore in bytes, of every generation with SparseCores: what libtpu gives to a kernel.
VECTOR_SUBCORE_SMEM = 2047 * 4
SCALAR_SUBCORE_SMEM = 16313 * 4


@frozen
class SparseCores:
    """The SparseCores of a chip.

    Compiled for v5p, v6e and v7x with jax 0.12.0.1: what is exactly as large as a memory fits, and a row more does not.
    """

    cores: int
    lanes: int  # 32-bit numbers of a vector
    vmem: int  # of one vector subcore, in bytes
    subcores: int = 16  # vector subcores of each core

    @property
    def shared(self) -> int:
        """`VMEM_SHARED` of a core in bytes, of which the VMEM of all its subcores is a part."""
        return self.subcores * self.vmem

    def shapes(self, bits: int) -> tuple[tuple[int, ...], ...]:
        """Shapes of a register with numbers of so many bits: what is loaded where no layout pass cuts it up."""
        packed = 32 // bits
        return ((self.lanes,),) if packed == 1 else ((self.lanes * packed,), (packed, self.lanes))


@frozen
class Chip:
    """One generation; memory in bytes of a core."""

    generation: int
    vmem: int
    default_vmem: int | None  # that a kernel gets without `vmem_limit_bytes`; None where libtpu has no such chip yet
    sublanes: int = SUBLANES
    since: str | None = None  # the first jax release that lowers for it; None: all that are known
    sparse: SparseCores | None = None  # of the generations for which libtpu compiles SparseCore kernels

    @property
    def compiles(self) -> bool:
        """Whether libtpu, up to the newest that was measured, compiles for it."""
        return self.default_vmem is not None


def _chip(name: str, generation: int, **more: Any) -> Chip:
    return Chip(generation, *VMEM[name], sublanes=SUBLANES_OF.get(name, SUBLANES), **more)


CHIPS: dict[str, Chip] = {
    "v4": _chip("v4", 4),
    "v5e": _chip("v5e", 5),
    "v5p": _chip("v5p", 5, sparse=SparseCores(4, 8, 512 * _KIB)),
    "v6e": _chip("v6e", 6, sparse=SparseCores(2, 8, 256 * _KIB)),
    "tpu7x": _chip("tpu7x", 7, sparse=SparseCores(2, 16, 512 * _KIB)),
    "tpu8i": _chip("tpu8i", 8, since="0.10.2"),
    "tpu8t": _chip("tpu8t", 8, since="0.11.1"),
}

SPARSE: dict[str, SparseCores] = {name: chip.sparse for name, chip in CHIPS.items() if chip.sparse is not None}


def sparse_cores(device: str | None) -> tuple[SparseCores, ...]:
    """The SparseCores of the device; of all generations where none is named."""
    return tuple(each for name, each in SPARSE.items() if device in (None, name))


def sublanes(device: str | None) -> int:
    """Rows of 32-bit numbers in a vector register of the device, a TPU or not."""
    chip = CHIPS.get(device or "")
    return chip.sublanes if chip is not None else SUBLANES


def compiles_for(device: str | None) -> bool:
    """Whether compilation for the device was measured with libtpu; True of GPUs, and where no device is named."""
    chip = CHIPS.get(device or "")
    return chip is None or chip.compiles


def knowing(device: str | None, versions: Iterable[str]) -> tuple[str, ...]:
    """The jax versions, out of these, that have the device."""
    chip = CHIPS.get(device or "")
    if chip is None or chip.since is None:
        return tuple(versions)
    since = parse(chip.since)
    return tuple(version for version in versions if parse(version) >= since)
