"""Memory that a launch certainly needs on a TPU core, and the memory that there is."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.dataflow import inputs
from pallas_lint.kernels.facts.defaults import with_defaults
from pallas_lint.kernels.grid.blocks import blocks_of
from pallas_lint.kernels.model.compiler_params import compiler_param
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.trace import Access, Op
from pallas_lint.kernels.model.values import NONE, Array, Ref, Seq, Sym
from pallas_lint.probe import chip_memory
from pallas_lint.probe.byte_sizes import format_exactly
from pallas_lint.probe.chip_memory import LANES, SUBLANES, bits_held, filled_rows, is_one_piece
from pallas_lint.records import evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace

_MAX_TILES = 1 << 16  # of the size for which the largest number is sought: 8 Mi elements


@frozen
class Part:
    """One buffer of the sum: `count` copies of `bytes`, tiles filled up.

    `array`: the bytes of its array, where XLA may keep that in VMEM instead, as far as they are known.
    """

    name: str
    bytes: int
    count: int
    array: int | None = None

    @property
    def total(self) -> int:
        return self.bytes * self.count

    def __str__(self) -> str:
        times = f"{self.count} x " if self.count > 1 else ""
        return f"{self.name} {times}{format_exactly(self.bytes)}"


@frozen
class LaunchBudget:
    """The VMEM that a launch needs at least, and the limit that it sets (None: the default, or not known).

    `assumed`: what part of it rests on, parameters at their defaults and inputs of the output's dtype.
    """

    parts: tuple[Part, ...]
    limit: int | None
    limit_known: bool
    assumed: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(part.total for part in self.parts)

    def exceeds_anywhere(self, limit: int, capacity: int, kept: int) -> bool:
        """Whether it is too much wherever XLA keeps arrays of up to `kept` bytes."""
        arrays = (None if part.array is None or part.array > kept else part.array for part in self.parts)
        totals = (part.total for part in self.parts)
        return chip_memory.exceeds_anywhere(zip(totals, arrays, strict=True), limit, capacity)

    def counted_once(self) -> LaunchBudget:
        """As compilers count that leave out the second buffer of a block."""
        return evolve(self, parts=tuple(evolve(part, count=1) for part in self.parts))


def spelled(parts: Sequence[Part]) -> str:
    """ "x 2 x 4 MiB + o 2 x 4 MiB + scratch 8 MiB", the largest first."""
    ordered = sorted(parts, key=lambda part: -part.total)
    rest = sum(part.total for part in ordered[5:])
    return " + ".join([*(str(part) for part in ordered[:5]), *([f"others {format_exactly(rest)}"] if rest else [])])


def padded_bytes(shape: tuple[int, ...], dtype: str, sublanes: int = SUBLANES, *, scratch: bool = False) -> int:
    """The size of a VMEM buffer of a block, or of scratch, filled up to tiles."""
    return chip_memory.padded_bytes(shape, bits_held(dtype, bits(dtype), scratch=scratch), sublanes)


def budgets_of(launch: Launch, analysis: Analysis, sublanes: int = SUBLANES) -> tuple[LaunchBudget, ...]:
    """The VMEM that the launch certainly takes, and that under the usual assumptions; none if not known."""
    key = "budgets", launch, sublanes
    return analysis.memo.get_or_compute(key, lambda: _budgets_of(launch, analysis, sublanes)).value


def _budgets_of(launch: Launch, analysis: Analysis, sublanes: int) -> tuple[LaunchBudget, ...]:
    blocks = blocks_of(launch, analysis)
    if blocks is None:
        return ()
    names = {(ref.role, ref.index): ref.parameter for trace in launch.traces[:1] for ref in trace.refs}
    limit = compiler_param(launch, "vmem_limit_bytes")
    number = integer(limit)
    known = number is not None or limit in (None, NONE)
    dtypes = {block.dtype for block in blocks.outputs or () if block is not None and block.dtype is not None}
    usual_dtype = dtypes.pop() if len(dtypes) == 1 else None
    sure: list[Part] = []
    usual: list[Part] = []
    assumed: set[str] = set()
    for block in (*blocks.operands, *(blocks.scratch or ())):
        if block is None or (block.role == "scratch" and not _may_be_read(launch, block.index)):
            continue
        fallback = f"scratch {block.index}" if block.role == "scratch" else f"{block.role}put {block.index}"
        name = names.get((block.role, block.index), fallback)
        part = _part(block, name, sublanes)
        if part is not None:
            sure.append(part)
        by_default, taken = with_defaults(block)
        by_default, least = _with_least_sizes(by_default, analysis)
        untyped = block.role == "in" and block.dtype is None and usual_dtype is not None
        if untyped:
            by_default = evolve(by_default, dtype=usual_dtype)
        likely = _part(by_default, name, sublanes)
        if likely is not None:
            usual.append(likely)
            if likely != part:
                assumed |= {f"{key}={value}" for key, value in taken.items()}
                assumed |= {f"{name} is {usual_dtype}"} if untyped else set()
                assumed |= {f"{size} is {number} or more" for size, number in least.items()}
    found = [LaunchBudget(tuple(sure), number, known)]
    if assumed:
        found.append(LaunchBudget(tuple(usual), number, known, tuple(sorted(assumed))))
    return tuple(found)


def _with_least_sizes(block: Block, analysis: Analysis) -> tuple[Block, dict[str, int]]:
    """The block with the least of each size that the guards of the code let through, and those sizes."""
    effects, least = analysis.outcome.effects, dict[Sym, int]()
    for size, number in (*effects.multiples, *effects.least):
        if isinstance(size, Sym) and size in (block.block_shape or ()):
            least[size] = max(number, least.get(size, 0))
    if block.dims is None or not least:
        return block, {}
    return _with_sizes(block, least), {size.text: number for size, number in least.items()}


def _with_sizes(block: Block, numbers: dict[Sym, int]) -> Block:
    """The block with numbers for sizes that have only names."""
    sizes = ((dim, numbers.get(dim.size) if isinstance(dim.size, Sym) else None) for dim in block.dims or ())
    return evolve(block, dims=tuple(dim if size is None else evolve(dim, size=size) for dim, size in sizes))


def largest_size(launch: Launch, analysis: Analysis, sublanes: int, limit: int) -> tuple[Sym, int] | None:
    """The one size in the blocks that has only a name, that of an array, and the most with which they may fit."""
    every = _typed_blocks(launch, analysis)
    sizes = {size for block in every for size in block.block_shape or (None,) if not isinstance(size, int)}
    size = sizes.pop() if len(sizes) == 1 else None
    if size is None or size.operation is not None or ".shape[" not in size.text:
        return None

    def exceeds(tiles: int) -> bool:
        parts = [_part(_with_sizes(block, {size: tiles * LANES}), "", sublanes) for block in every]
        return None in parts or sum(part.total for part in parts if part is not None) > limit

    tiles = bisect_left(range(1, _MAX_TILES), True, key=exceeds)
    return (size, tiles * LANES) if 0 < tiles < _MAX_TILES - 1 else None


def _typed_blocks(launch: Launch, analysis: Analysis) -> list[Block]:
    """The blocks in VMEM at their defaults, of the outputs' dtype where an input's is not known; none if one is not."""
    blocks = blocks_of(launch, analysis)
    if blocks is None or not blocks.grid.sizes:
        return []
    every = (*(blocks.inputs or (None,)), *(blocks.outputs or (None,)), *(blocks.scratch or ()))
    held = [block for block in every if block is None or block.space in (None, "vmem")]
    dtypes = {block.dtype for block in held if block is not None and block.role == "out"}
    usual = dtypes.pop() if len(dtypes) == 1 else None
    found = [evolve(with_defaults(block)[0], dtype=block.dtype or usual) for block in held if block is not None]
    return found if len(found) == len(held) else []


def scalars_of(launch: Launch, analysis: Analysis) -> tuple[Part, ...]:
    """The SMEM that the launch certainly takes: scalar-prefetch operands, other operands, outputs and scratch."""
    names = {(ref.role, ref.index): ref.parameter for trace in launch.traces[:1] for ref in trace.refs}
    parts = []
    for at, operand in enumerate((launch.operands or [])[: launch.prefetch_count or 0]):
        if isinstance(operand, Array) and operand.shape is not None and operand.dtype is not None:
            parts.append((names.get(("prefetch", at), f"prefetch {at}"), operand.shape, operand.dtype))
    blocks = blocks_of(launch, analysis)
    every = () if blocks is None else (*blocks.operands, *(blocks.scratch or ()))
    parts.extend(
        (names.get((block.role, block.index), block.role), block.block_shape, block.dtype)
        for block in every
        if block is not None and block.space == "smem" and block.sure and block.block_shape and block.dtype is not None
    )
    found = []
    for name, shape, dtype in parts:
        sizes = [size for size in shape if isinstance(size, int)]
        if len(sizes) == len(shape) and sizes and dtype in ("i32", "u32", "f32"):
            found.append(Part(name, filled_rows(sizes) * 4, 1))
    return tuple(found)


def _part(block: Block, name: str, sublanes: int) -> Part | None:
    if block.role == "scratch":
        if block.space != "vmem":
            return None
    elif block.space not in (None, "vmem") or hidden_space(block):
        return None
    shape = block.block_shape
    if shape is None or block.dtype in (None, "semaphore") or not block.sure:
        return None
    known = tuple(dim for dim in shape if isinstance(dim, int))
    if len(known) != len(shape) or not known or block.dtype is None:
        return None
    if block.role == "scratch":
        return Part(name, padded_bytes(known, block.dtype, sublanes, scratch=True), 1)
    array = _possible_array(block, known)
    kept = padded_bytes(array, block.dtype, sublanes) if is_one_piece(known, array) else None
    return Part(name, padded_bytes(known, block.dtype, sublanes), _copies(block), kept)


def _may_be_read(launch: Launch, index: int) -> bool:
    """Whether a kernel may read a scratch buffer: compilers leave out those that nothing reads, written or not."""
    return not launch.traces or any(_may_read(trace, index) for trace in launch.traces)


def _may_read(trace: KernelTrace, index: int) -> bool:
    if not trace.complete or trace.tracked_until is not None:
        return True
    declared, refs = trace.launch.scratch, [ref for ref in trace.refs if ref.role == "scratch"]
    if not isinstance(declared, Seq) or len(declared.items) != len(refs):
        return True
    buffer = refs[index].buffer
    return any(
        event.kind in ("load", "accumulate", "escape") and event.ref.buffer == buffer
        if isinstance(event, Access)
        else isinstance(event, Op) and any(isinstance(each, Ref) and each.buffer == buffer for each in inputs(event))
        for event in trace.events
    )


def _possible_array(block: Block, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes of the block's array; those that are not known are those of the block."""
    whole = block.array_shape
    if whole is None or len(whole) != len(sizes):
        return sizes
    return tuple(size if isinstance(size, int) else own for size, own in zip(whole, sizes, strict=True))


def hidden_space(block: Block) -> bool:
    """Whether its spec may put it into a memory that is not known."""
    if block.spec is None or block.space is not None:
        return False
    return block.spec.value.open or block.spec.value.argument("memory_space") not in (None, NONE)


def _copies(block: Block) -> int:
    """The number of buffers that the pipeline certainly keeps: two where the block moves, or the number in the spec."""
    moves = any(
        isinstance(steps, int) and steps > 1 and block.ignores(axis) is False
        for axis, steps in enumerate(block.grid.sizes)
    )
    if not moves:
        return 1
    return block.buffers if block.buffers is not None else 2
