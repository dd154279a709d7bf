"""Memory of SparseCores that a launch certainly needs."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.memory_budget import Part, hidden_space
from pallas_lint.kernels.grid.blocks import blocks_of
from pallas_lint.kernels.model.compiler_params import compiler_param
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.kernels.model.values import NONE, Const
from pallas_lint.probe.chip_memory import filled_rows, padded_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Allocation
    from pallas_lint.kernels.model.values import Ref, Shape

_PIPELINE = f"{PALLAS}.tpu.emit_pipeline"
_WORD = 4  # bytes: SMEM is allocated in words


def is_tiled(launch: Launch) -> bool:
    """Whether arrays certainly lie in tiles of eight rows and 128 lanes, as by default."""
    return compiler_param(launch, "use_tc_tiling_on_sc") in (None, NONE, Const(True))


def subcore_memory(launch: Launch, space: str, analysis: Analysis) -> tuple[Part, ...]:
    """What a launch certainly holds at once of one memory: "vmem" of a vector subcore, "smem" of either, "vmem_shared".

    It is scratch, what `run_scoped` allocates where that is most, and in VMEM the buffers of pipelines. Rows are filled
    up to whole lanes, in SMEM up to tiles.
    """
    if len(launch.traces) != 1:  # a branch decides which kernel it is
        return ()
    trace, tiled = launch.traces[0], is_tiled(launch)
    scratch = list(_buffers((ref for ref in trace.refs if ref.role == "scratch" and ref.owner is None), space, tiled))
    scopes = [
        [part for held in allocation.held() for part in _parts(held, space, analysis, tiled)]
        for allocation in trace.allocations
        if allocation.certain
    ]
    return (*scratch, *max(scopes, key=lambda parts: sum(part.total for part in parts), default=[]))


def _parts(allocation: Allocation, space: str, analysis: Analysis, tiled: bool) -> Iterator[Part]:
    yield from _buffers(allocation.refs, space, tiled)
    pipeline = allocation.pipeline
    if pipeline is None or pipeline.api != _PIPELINE or pipeline.open or space != "vmem":
        return
    blocks = blocks_of(pipeline, analysis)
    for block in () if blocks is None else blocks.operands:
        if block is not None and block.sure and block.space in (None, "vmem") and not hidden_space(block):
            held = _bytes(block.block_shape, block.dtype, "vmem", tiled)
            # Two buffers, also where the block stays where it is.
            yield from [Part(f"{block.role}put {block.index}", held, block.buffers or 2)] if held else ()


def _buffers(refs: Iterable[Ref], space: str, tiled: bool) -> Iterator[Part]:
    for ref in refs:
        if ref.space == space and not ref.optional:
            held = _bytes(ref.shape, ref.dtype, space, tiled)
            yield from [Part(ref.parameter, held, 1)] if held else ()


def _bytes(shape: Shape | None, dtype: str | None, space: str, tiled: bool) -> int:
    """The size of a buffer in bytes; 0 where it is not known."""
    sizes = [size for size in shape or () if isinstance(size, int)]
    if shape is None or len(sizes) != len(shape) or dtype in (None, "semaphore") or not sizes:
        return 0
    if space == "smem":
        filled = padded_bytes(tuple(sizes), 32) if tiled else prod(sizes) * _WORD
        return filled if bits(dtype or "") == 32 else 0
    numbers = filled_rows(sizes) if tiled else prod(sizes)
    return numbers * (32 if dtype == "bool" else bits(dtype)) // 8
