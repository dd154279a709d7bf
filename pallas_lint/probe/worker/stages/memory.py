"""On-chip memory that a TPU launch needs, by the compiler's own rule.

Blocks of VMEM operands, padded to tiles, twice (once while one is computed on, once while the next arrives) unless the
grid has one point or the index map is constant, and the scratch. Equal to what libtpu reports in 40 of 40 random specs
on 0.8.3 and 0.12 (0.4.35 also doubles constant blocks). A lower bound: what the compiler itself needs is not in it.
"""

from __future__ import annotations

import math

from ...protocol import MemoryPart, Needed
from ..launches.launch import Launch, Operand

# Bytes of VMEM: (physical, what a kernel gets without `vmem_limit_bytes`). From libtpu's own messages, jax 0.12; of
# those that no libtpu compiles for, the first from jax's table, `jax._src.tpu_info`, and the second is not known.
VMEM: dict[str, tuple[int, int | None]] = {
    "v4": (16 << 20, 16 << 20),
    "v5e": (128 << 20, 16 << 20),
    "v5p": (64 << 20, 16 << 20),
    "v6e": (128 << 20, 32 << 20),
    "tpu7x": (64 << 20, 32 << 20),
    "tpu8i": (192 << 20, None),
    "tpu8t": (128 << 20, None),
}
SMEM = 1 << 20  # of every generation; a little of it is taken by the compiler
LANES = 128
_SIXTEEN_SUBLANES = ("tpu8t",)  # of 32 bits in a vector register; others have eight
_HALF_BYTES = ("i4", "u4")  # in blocks; scratch of these takes a byte for each number


def padded_bytes(shape: tuple[int, ...], bits: int, sublanes: int = 8) -> int:
    """Bytes of a VMEM buffer of numbers of so many bits, padded to tiles.

    A vector takes rows of 128 words of 32 bits. In a matrix, lanes come in 128s and rows in tiles of `sublanes`, or of
    a smaller power of two where there are no more rows, whatever the type; a word holds numbers of so many rows as fit
    into it. Where there are more dimensions, XLA finds layouts for few rows that waste less: they count as they are.
    """
    if len(shape) < 2:
        return _up(math.prod(shape) * bits, LANES * 32) // 8
    *planes, rows, lanes = shape
    tile = min(1 << max(rows - 1, 0).bit_length(), sublanes)
    if not planes:
        tile = max(tile, 32 // bits)
    return math.prod(planes) * _up(rows, tile) * _up(lanes, LANES) * bits // 8


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def buffers(operand: Operand, launch: Launch, constant: bool) -> int:
    """How many copies of the operand's block are held at a time."""
    if operand.role == "scratch":
        return 1
    if launch.points == 1 or constant:
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
    sublanes = 16 if device in _SIXTEEN_SUBLANES else 8
    for at, operand in enumerate(launch.operands):
        if operand.memory_space not in (None, "vmem"):
            continue
        copies = buffers(operand, launch, constants.get(at, False))
        bits = 4 if operand.dtype in _HALF_BYTES and operand.role != "scratch" else 8 * operand.itemsize
        size = padded_bytes(operand.block_shape, bits, sublanes) if bits else 0
        parts.append({"name": operand.name, "role": operand.role, "bytes": size, "buffers": copies})
    return {"space": "vmem", "bytes": sum(p["bytes"] * p["buffers"] for p in parts), "parts": parts}


def scalars(launch: Launch) -> Needed | None:
    """The same of SMEM, in which rows of a matrix take multiples of 128 numbers."""
    if launch.backend not in (None, "tpu") or launch.record.kind != "pallas_call":
        return None
    parts: list[MemoryPart] = []
    for operand in launch.operands:
        if operand.memory_space != "smem":
            continue
        *rows, last = operand.block_shape or (1,)
        size = math.prod(rows) * (_up(last, LANES) if rows else last) * operand.itemsize
        parts.append({"name": operand.name, "role": operand.role, "bytes": size, "buffers": 1})
    return {"space": "smem", "bytes": sum(part["bytes"] for part in parts), "parts": parts}


def limit(device: str, launch: Launch) -> int:
    """Bytes that the launch may use on a device generation."""
    physical, default = VMEM[device]
    return min(launch.vmem_limit, physical) if launch.vmem_limit else default or physical
