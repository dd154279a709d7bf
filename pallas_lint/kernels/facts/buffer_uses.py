"""Uses of one buffer by a kernel: initialisation, accumulation and reads, with their conditions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.facts.dataflow import SELECTING, Flow, is_among, is_obscure, operands
from pallas_lint.kernels.grid.blocks import blocks_of
from pallas_lint.kernels.grid.grid_simulation import SimulationCache
from pallas_lint.kernels.model.trace import Access, conditions_in, is_full_index
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NONE,
    Array,
    Const,
    Dictionary,
    Ref,
    Slice,
    Value,
    as_tuple,
    dim,
)
from pallas_lint.records import field, frozen

if TYPE_CHECKING:
    from pallas_lint.identity import ById
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Guard, KernelTrace

# "set": all of it is written, with a value that owes nothing to what it held; "update": with one that does;
# "part": some of it is written; "read": it is read for something else; "obscure": it is not known which of these.
UseKind = Literal["set", "update", "part", "read", "obscure"]


@frozen(eq=False, slots=False)
class BufferUse:
    """One thing that a kernel does to a buffer. `into`: the buffers whose new value comes from what is read."""

    kind: UseKind
    access: Access
    into: frozenset[tuple[str, object]] = frozenset()

    @property
    def rests_on_value(self) -> bool:
        """Whether it matters what the buffer holds: a load that goes nowhere may be for its shape alone."""
        return self.kind == "update" or (
            self.kind == "read" and (bool(self.into) or not isinstance(self.access.value, Array))
        )

    @cached_property
    def guards(self) -> tuple[Guard, ...]:
        return conditions_in(self.access.guards)


def uses_of(ref: Ref, trace: KernelTrace, flow: Flow) -> list[BufferUse] | None:
    """Everything that the kernel does to a buffer, in order; None where code that is not seen may do more."""
    if trace.tracked_until is not None or not trace.complete:
        return None
    found: list[BufferUse] = []
    loads: list[tuple[Access, set[ById]]] = []
    for event in trace.events:
        if not isinstance(event, Access) or event.ref.buffer != ref.buffer or event.kind == "delete":
            continue
        if event.kind == "escape":
            return None
        if event.kind == "load":
            if flow.only_shape(event):
                continue
            tainted = flow.derived(event)
            if _is_selected(tainted, trace):
                return None
            loads.append((event, tainted))
            into = _written(tainted, trace)
            if into != {ref.buffer}:  # else it is part of an update
                found.append(BufferUse("read", event, frozenset(into)))
            continue
        found.append(BufferUse(_kind(event, loads, ref), event))
    return found


def _kind(event: Access, loads: list[tuple[Access, set[ById]]], ref: Ref) -> UseKind:
    if event.kind == "accumulate" or any(is_among(event.value, tainted) for _, tainted in loads):
        return "update"
    if not covers(event):
        return "part"
    if loads and is_obscure(event.value):
        return "obscure"
    return "set"


def covers(event: Access) -> bool:
    """Whether a store certainly writes the whole buffer."""
    ref = event.ref
    if ref.view and not (ref.indexer is not None and is_full_index(ref.indexer)):
        return False
    if is_full_index(event.index):
        return True
    parts = as_tuple(event.index)
    parts = tuple(part for part in parts if part != ELLIPSIS)
    if ref.shape is None or len(parts) > len(ref.shape):
        return False
    return all(_takes_all(part, size) for part, size in zip(parts, ref.shape, strict=False))


def _takes_all(part: Value, size: object) -> bool:
    if isinstance(part, Slice):
        if part.size is not None:
            return part.start == Const(0) and dim(part.size) is not None and dim(part.size) == size
        return (part.start, part.step) in ((NONE, NONE), (Const(0), NONE)) and (
            part.stop == NONE or (dim(part.stop) is not None and dim(part.stop) == size)
        )
    return part == Const(0) and size == 1


def _is_selected(tainted: set[ById], trace: KernelTrace) -> bool:
    """Whether a value goes through a `where`, which may be the guard."""
    return any(op.name in SELECTING and any(is_among(value, tainted) for value in operands(op)) for op in trace.ops())


def _written(tainted: set[ById], trace: KernelTrace) -> set[tuple[str, object]]:
    return {
        event.ref.buffer
        for event in trace.events
        if isinstance(event, Access) and event.kind in ("store", "accumulate") and is_among(event.value, tainted)
    }


# -- the buffers of a launch ---------------------------------------------------------------------------------------


@frozen(eq=False)
class BufferHistory:
    """An output or scratch buffer and all that is done to it.

    `results`: the outputs that it ends up in, itself where it is one. Each write of these replaces what was there.
    """

    ref: Ref
    uses: list[BufferUse]
    results: list[tuple[Ref, Block]]
    cache: SimulationCache = field(factory=SimulationCache, repr=False)

    @property
    def is_output(self) -> bool:
        return self.ref.role == "out"

    @property
    def flushing(self) -> frozenset[tuple[str, object]] | None:
        """The outputs that a scratch buffer is written out to; None for an output, which the grid writes out."""
        return None if self.is_output else frozenset(ref.buffer for ref, _ in self.results)

    @property
    def spelled(self) -> str:
        return f"`{self.ref.parameter}`"


def buffers_of(trace: KernelTrace, launch: Launch, analysis: Analysis) -> list[BufferHistory]:
    """The outputs and scratch buffers all of whose uses are known, and which are not aliased."""
    return analysis.memo.get_or_compute(("buffers", trace, launch), lambda: _buffers_of(trace, launch, analysis)).value


def _buffers_of(trace: KernelTrace, launch: Launch, analysis: Analysis) -> list[BufferHistory]:
    blocks = blocks_of(launch, analysis)
    if blocks is None:
        return []
    refs = {ref.buffer: ref for ref in trace.refs if ref.role in ("out", "scratch") and not ref.view}
    flow = Flow(trace)
    uses = {
        key: found
        for key, ref in refs.items()
        if starts_uninitialised(ref, launch) and (found := uses_of(ref, trace, flow)) is not None
    }
    outputs = {
        key: block for key, ref in refs.items() if key in uses and (block := _placed(blocks.of(ref))) is not None
    }
    replaced = {key for key in outputs if all(use.kind in ("set", "read") for use in uses[key])}
    buffers: list[BufferHistory] = []
    cache = SimulationCache()
    for key, ref in refs.items():
        if key not in uses or not uses[key]:
            continue
        if ref.role == "out":
            if key in outputs:
                buffers.append(BufferHistory(ref, uses[key], [(ref, outputs[key])], cache))
            continue
        into = {target for use in uses[key] for target in use.into} & replaced
        buffers.append(
            BufferHistory(ref, uses[key], [(refs[target], outputs[target]) for target in sorted(into)], cache)
        )
    return buffers


def holds_pipelines(trace: KernelTrace, analysis: Analysis) -> bool:
    """Whether bodies of pipelines are part of the trace: `program_id` means another grid in there."""
    return any(trace in launch.traces and launch is not trace.launch for launch in analysis.launches)


def _placed(block: Block | None) -> Block | None:
    """The block where it is certainly known and in memory that is pipelined over the grid."""
    return block if block is not None and block.sure and block.space in (None, "vmem", "smem") else None


def starts_uninitialised(ref: Ref, launch: Launch) -> bool:
    """Whether the memory behind `ref` certainly holds nothing of use when the kernel starts."""
    if ref.dtype == "semaphore" or ref.space in ("semaphore", "regs", "tmem"):
        return False
    if ref.role == "scratch":
        return True
    if ref.role != "out":
        return False
    if launch.form.outputs == "operands":
        accumulates = launch.argument("should_accumulate_out") not in (None, NONE, Const(False))
        return not accumulates and not launch.open and launch.options <= {"scratches"}
    aliases = launch.argument("input_output_aliases")
    if aliases is None or aliases == NONE:
        return not launch.open
    if isinstance(aliases, Dictionary) and not aliases.open:
        return all(isinstance(out, Const) and out.value != ref.index for _, out in aliases.items)
    return False
