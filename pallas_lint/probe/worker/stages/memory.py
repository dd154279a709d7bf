"""On-chip memory that a TPU launch needs, by the compiler's own rule.

Blocks of VMEM operands, padded to tiles, twice (once while one is computed on, once while the next arrives) unless the
grid has one point or the index map is constant, and the scratch that is read. Equal to what libtpu reports in 40 of 40
random specs on 0.8.3 and 0.12; releases to 0.0.29 count each block once (that of jax 0.4.35 doubles constant blocks,
too). A lower bound: what the compiler itself needs is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...chip_memory import (
    COUNTED_TWICE_SINCE,
    SUBLANES,
    SUBLANES_OF,
    VMEM,
    bits_held,
    exceeds_anywhere,
    filled_rows,
    is_one_piece,
    kept_arrays,
    padded_bytes,
)
from ...protocol import MemoryPart, Needed
from .. import environment
from ..launches.launch import Launch, Operand

_LIMIT_OPTION = "xla_tpu_scoped_vmem_limit_kib"  # of XLA, for kernels that set no limit


def counts_once() -> bool:
    """Whether the TPU compiler of this environment, or that of its jax, counts a block once."""
    libtpu = environment.parts()["libtpu"]
    if libtpu is None:
        return environment.version() < COUNTED_TWICE_SINCE["jax"]
    release = re.match(r"(\d+)\.(\d+)\.(\d+)", libtpu)
    return release is not None and tuple(map(int, release.groups())) < COUNTED_TWICE_SINCE["libtpu"]


def buffers(operand: Operand, launch: Launch, constant: bool) -> int:
    """How many copies of the operand's block are held at a time."""
    if operand.role == "scratch" or launch.points == 1 or constant:
        return 1
    count = getattr(getattr(operand.mapping, "pipeline_mode", None), "buffer_count", None)
    return count if isinstance(count, int) else 2


def needed(launch: Launch, constants: dict[int, bool], device: str) -> Needed | None:
    """The sum over the VMEM operands on a device, and its parts; None where the launch is not for a TPU.

    `constants` has by position which operands have an index map that always gives the same block.
    """
    if launch.backend not in (None, "tpu") or launch.record.kind != "pallas_call":
        return None
    parts: list[MemoryPart] = []
    once, counted = counts_once(), _is_counted(launch)
    for at, operand in enumerate(launch.operands):
        if counted(operand):
            copies = 1 if once else buffers(operand, launch, constants.get(at, False))
            size = _size(operand, operand.block_shape, device)
            parts.append({"name": operand.name, "role": operand.role, "bytes": size, "buffers": copies})
    return {"space": "vmem", "bytes": sum(p["bytes"] * p["buffers"] for p in parts), "parts": parts}


def is_too_much_anywhere(launch: Launch, needs: Needed, device: str) -> bool:
    """Whether what a launch needs is too much in any function: XLA may keep operands and results in VMEM there."""
    sizes = [part["bytes"] * part["buffers"] for part in needs["parts"]]
    arrays = [_kept_array(operand, device) for operand in filter(_is_counted(launch), launch.operands)]
    return exceeds_anywhere(zip(sizes, arrays), limit(device, launch), VMEM[device][0])


def _kept_array(operand: Operand, device: str) -> int | None:
    """The bytes of the array where XLA may keep it in VMEM, and its blocks take nothing then."""
    if operand.role == "scratch":
        return None
    size = _size(operand, operand.shape, device)
    sizes = operand.shape if operand.block is None else [each for _, each in operand.block]
    return size if size <= kept_arrays(device) and is_one_piece(sizes, operand.shape) else None


def _is_counted(launch: Launch) -> Callable[[Operand], bool]:
    """Whether compilers count an operand: those in VMEM, and of scratch what is read."""
    reads = launch.reads
    return lambda operand: (
        operand.memory_space in (None, "vmem") and (operand.role != "scratch" or operand.name in reads)
    )


def _size(operand: Operand, shape: tuple[int, ...], device: str) -> int:
    """Bytes of a buffer for a part of an operand."""
    width = 4 if operand.dtype in ("i4", "u4") else 8 * operand.itemsize
    bits = bits_held(operand.dtype, width, scratch=operand.role == "scratch")
    return padded_bytes(shape, bits, SUBLANES_OF.get(device, SUBLANES)) if bits else 0


def scalars(launch: Launch) -> Needed | None:
    """The SMEM that a launch needs; there, rows of a matrix take multiples of 128 numbers."""
    if launch.backend not in (None, "tpu") or launch.record.kind != "pallas_call":
        return None
    parts: list[MemoryPart] = []
    for operand in launch.operands:
        if operand.memory_space != "smem":
            continue
        size = filled_rows(operand.block_shape or (1,)) * operand.itemsize
        parts.append({"name": operand.name, "role": operand.role, "bytes": size, "buffers": 1})
    return {"space": "smem", "bytes": sum(part["bytes"] for part in parts), "parts": parts}


def limit(device: str, launch: Launch) -> int:
    """Bytes that the launch may use on a device generation."""
    physical, default = VMEM[device]
    chosen = launch.vmem_limit or 1024 * int(launch.record.options.get(_LIMIT_OPTION, 0))
    return min(chosen, physical) if chosen else default or physical
