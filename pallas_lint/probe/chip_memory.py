"""Memories of TPU TensorCores, and what a buffer takes there: one table for the linter and for the probe's worker.

Nothing is imported but the standard library: the worker has it in the user's interpreter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

MIB = 1 << 20
# Bytes of VMEM of a core: (physical, what a kernel gets without `vmem_limit_bytes`). The first are those of jax's own
# table (`jax._src.tpu_info` of 0.12.0.1), the second stand in libtpu's errors: None where it does not compile for the
# chip yet.
VMEM: dict[str, tuple[int, int | None]] = {
    "v4": (16 * MIB, 16 * MIB),
    "v5e": (128 * MIB, 16 * MIB),
    "v5p": (64 * MIB, 16 * MIB),
    "v6e": (128 * MIB, 32 * MIB),
    "tpu7x": (64 * MIB, 32 * MIB),
    "tpu8i": (192 * MIB, None),
    "tpu8t": (128 * MIB, None),
}
# From this jax and libtpu on, a block that the pipeline moves counts twice against the limit, as it lies in VMEM; up to
# jax 0.8.0 and libtpu 0.0.29 once. Compiled with jax 0.5.3, 0.6.0, 0.6.2, 0.7.0, 0.7.2, 0.8.0, 0.8.1 for v5e and v6e.
COUNTED_TWICE_SINCE = {"jax": (0, 8, 1), "libtpu": (0, 0, 30)}
SMEM = MIB  # of every generation; a little of it is taken by the compiler
LANES = 128  # of every generation
SUBLANES = 8  # of 32 bits in a vector register, where a chip has no others
SUBLANES_OF = {"tpu8t": 16}
_HALF_BYTES = ("i4", "u4")


def bits_held(dtype: str, bits: int, *, scratch: bool) -> int:
    """Bits that a number of a dtype ("bf16"), of so many bits, takes in VMEM: those of blocks, or of scratch.

    Truth values are words. Scratch of half bytes takes a byte for each.
    """
    if dtype == "bool":
        return 32
    return 8 if scratch and dtype in _HALF_BYTES else bits


def padded_bytes(shape: tuple[int, ...], bits: int, sublanes: int = SUBLANES) -> int:
    """Bytes of a VMEM buffer of numbers of so many bits, filled up to tiles.

    A vector takes rows of 128 words of 32 bits. In a matrix, lanes come in 128s and rows in tiles of `sublanes`, or of
    a smaller power of two where there are no more rows, whatever the type; a word holds numbers of so many rows as fit
    into it. Where there are more dimensions, XLA finds layouts for few rows that waste less: they count as they are.
    """
    if len(shape) < 2:
        return up(math.prod(shape) * bits, LANES * 32) // 8
    *planes, rows, lanes = shape
    tile = min(1 << max(rows - 1, 0).bit_length(), sublanes)
    if not planes:
        tile = max(tile, 32 // bits)
    return math.prod(planes) * up(rows, tile) * up(lanes, LANES) * bits // 8


def is_one_piece(block: Sequence[int], array: Sequence[int]) -> bool:
    """Whether a block lies in one piece of its array: in rows of it, with all that is below them.

    Where XLA keeps such an array in VMEM, a kernel takes the block where it is, and no buffers: compiled with libtpu
    0.0.32 and 0.0.50 for v5e, v6e and v7x. Of other blocks it has buffers there, too.
    """
    smaller = [axis for axis, (size, whole) in enumerate(zip(block, array, strict=False)) if size < whole]
    return not smaller or all(size == 1 for size in block[: smaller[-1]])


def kept_arrays(device: str) -> int:
    """Bytes of VMEM that XLA has for arrays between operations: none where a kernel may take all of it (v4)."""
    capacity, default = VMEM[device]
    return 0 if capacity == default else capacity


def stays_in_hbm(size: int) -> bool:
    """Whether an array of so many bytes lies in HBM on every TPU, where copies of its blocks have a bounds check."""
    return size > max(map(kept_arrays, VMEM))


def exceeds_anywhere(parts: Iterable[tuple[int, int | None]], limit: int, capacity: int) -> bool:
    """Whether these parts are too much wherever XLA keeps arrays.

    Each has the bytes of its buffers, and of the array that XLA may keep in VMEM instead, which `limit` leaves out.
    """
    every = [*parts]
    fixed = sum(buffers for buffers, array in every if array is None)
    least = sum(buffers if array is None else min(buffers, array) for buffers, array in every)
    return fixed > limit or least > capacity


def filled_rows(sizes: Sequence[int]) -> int:
    """Numbers of an array in SMEM, whose rows are filled up to multiples of 128; a vector is not."""
    *rows, lanes = sizes
    return math.prod(rows) * (up(lanes, LANES) if rows else lanes)


def up(size: int, step: int) -> int:
    """The next multiple of `step`."""
    return -(-size // step) * step
