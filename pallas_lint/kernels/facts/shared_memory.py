"""Shared memory that a Mosaic GPU kernel certainly needs, as jax adds it up (0.8.3 to 0.12.0.1).

Buffers of `run_scoped`, scratch and pipeline slots begin at multiples of 1024 bytes. Nested allocations add up; of
consecutive ones the largest counts. It is a lower bound: reductions need some more.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.memory_budget import Part, hidden_space
from pallas_lint.kernels.grid.blocks import blocks_of
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import PALLAS, integer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Allocation, KernelTrace
    from pallas_lint.kernels.model.values import Ref, Shape

SHARED = 232448  # bytes for one block of threads on Hopper and Blackwell; older cards have less
LOCAL_DATA_SHARE = 65536  # ... of a workgroup on CDNA 2 and 3 (MI200, MI300); MI350 has 160 KiB
_GPU = f"{PALLAS}.mosaic_gpu"
PLAIN, SPECIALISED = f"{_GPU}.emit_pipeline", f"{_GPU}.emit_pipeline_warp_specialized"
STEPS = {PLAIN: 1, SPECIALISED: 2}  # `max_concurrent_steps` where it is not given
_ALIGNED, _BARRIER, _TENSOR_MEMORY = 1024, 8, 4


def shared_memory(launch: Launch, analysis: Analysis) -> tuple[Part, ...]:
    """What a launch certainly holds of shared memory at once, at the place of the kernel where that is most."""
    if len(launch.traces) != 1:  # a branch decides which kernel it is
        return ()
    trace = launch.traces[0]
    scratch = list(_buffers(ref for ref in trace.refs if ref.role == "scratch" and ref.owner is None))
    scopes = [
        [part for held in allocation.held() for part in _parts(held, analysis)]
        for allocation in trace.allocations
        if allocation.certain
    ]
    largest = max(scopes, key=lambda parts: sum(part.total for part in parts), default=[])
    return (*scratch, *largest, *_tensor_memory(trace))


def _parts(allocation: Allocation, analysis: Analysis) -> Iterator[Part]:
    yield from _buffers(allocation.refs)
    pipeline = allocation.pipeline
    if pipeline is not None and pipeline.api in STEPS and "allocations" not in pipeline.options and not pipeline.open:
        yield from _slots(pipeline, analysis)


def _buffers(refs: Iterable[Ref]) -> Iterator[Part]:
    """Buffers and barriers that are declared."""
    for ref in refs:
        declared = ref.declared.short if ref.declared is not None else ""
        if ref.optional:
            continue
        if declared in ("Barrier", "ClusterBarrier") and ref.declared is not None:
            yield Part(ref.parameter, _BARRIER, max(integer(ref.declared.argument("num_barriers")) or 1, 1))
        elif ref.space == "smem" and declared == "SMEM":
            held = _bytes(ref.shape, ref.dtype)
            if held:
                yield Part(ref.parameter, _aligned(held), 1)


def _slots(pipeline: Launch, analysis: Analysis) -> Iterator[Part]:
    """The blocks of a pipeline, one for each step that is under way, and its barriers."""
    given = pipeline.argument("max_concurrent_steps")
    most = STEPS[pipeline.api] if given is None else integer(given) or 1
    grid = pipeline.grid
    sizes = [integer(size) or 1 for size in grid.items] if grid is not None else []
    slots = min(most, prod(sizes))
    blocks = blocks_of(pipeline, analysis)
    inputs = [] if blocks is None else _in_shared(blocks.inputs or ())
    outputs = [] if blocks is None else _in_shared(blocks.outputs or ())
    for block, held in (*inputs, *outputs):
        name = _name(pipeline, block)
        yield Part(name, _aligned(held * _copies(pipeline, block, slots)), 1)
    if inputs:
        yield Part("barriers", _BARRIER, slots if pipeline.api == PLAIN else 2 * slots)


def _copies(pipeline: Launch, block: Block, slots: int) -> int:
    """A specialised pipeline keeps one of what stays where it is."""
    moves = pipeline.api == PLAIN or any(block.ignores(axis) is False for axis in range(block.grid.rank))
    return slots if moves else 1


def _in_shared(blocks: Iterable[Block | None]) -> list[tuple[Block, int]]:
    """The blocks that are certainly in shared memory and whose size is known, with that size."""
    found = []
    for block in blocks:
        if block is not None and block.sure and block.space in (None, "smem") and not hidden_space(block):
            held = _bytes(block.block_shape, block.dtype)
            found += [(block, held)] if held else []
    return found


def _name(pipeline: Launch, block: Block) -> str:
    refs = pipeline.traces[0].refs if pipeline.traces else ()
    named = (ref.parameter for ref in refs if (ref.role, ref.index, ref.owner) == (block.role, block.index, pipeline))
    return next(named, f"{block.role}put {block.index}")


def _tensor_memory(trace: KernelTrace) -> Iterator[Part]:
    """The address of tensor memory, where some is allocated."""
    held = (ref for allocation in trace.allocations if allocation.certain for ref in allocation.refs)
    if any(ref.space == "tmem" and not ref.optional for ref in (*trace.refs, *held)):
        yield Part("address of tensor memory", _TENSOR_MEMORY, 1)


def _bytes(shape: Shape | None, dtype: str | None) -> int | None:
    sizes = [size for size in shape or () if isinstance(size, int)]
    if shape is None or len(sizes) != len(shape) or dtype in (None, "semaphore", "barrier"):
        return None
    return prod(sizes) * bits(dtype) // 8


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
