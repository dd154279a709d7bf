"""Memory of SparseCores: what a launch surely needs of a subcore's VMEM, and what there is."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.memory_budget import Part, compiler_param, filled_rows
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.values import NONE, Const

if TYPE_CHECKING:
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Shape

_KIB = 2**10
# VMEM of a vector subcore in bytes, of the generations that libtpu compiles SparseCore kernels for. Compiled with jax
# 0.10.2 and 0.12.0.1: what is exactly as large fits, and a row more does not.
SUBCORE_VMEM: dict[str, int] = {"v5p": 512 * _KIB, "v6e": 256 * _KIB, "tpu7x": 512 * _KIB}


def is_tiled(launch: Launch) -> bool:
    """Whether arrays surely lie in tiles of eight rows and 128 lanes, as by default."""
    return compiler_param(launch, "use_tc_tiling_on_sc") in (None, NONE, Const(True))


def subcore_memory(launch: Launch) -> tuple[Part, ...]:
    """What a launch surely holds of a vector subcore's VMEM: its scratch, rows filled up to whole tiles."""
    if len(launch.traces) != 1:  # a branch decides which kernel it is
        return ()
    tiled = is_tiled(launch)
    found = []
    for ref in launch.traces[0].refs:
        if ref.role == "scratch" and ref.owner is None and ref.space == "vmem" and not ref.optional:
            held = _bytes(ref.shape, ref.dtype, tiled=tiled)
            found += [Part(ref.parameter, held, 1)] if held else []
    return tuple(found)


def _bytes(shape: Shape | None, dtype: str | None, *, tiled: bool) -> int:
    """The size of a buffer in bytes; 0 where it is not known."""
    sizes = [size for size in shape or () if isinstance(size, int)]
    if shape is None or len(sizes) != len(shape) or dtype in (None, "semaphore") or not sizes:
        return 0
    numbers = filled_rows(sizes) if tiled else prod(sizes)
    return numbers * (32 if dtype == "bool" else bits(dtype)) // 8
