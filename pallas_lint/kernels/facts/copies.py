"""Asynchronous copies of a kernel: their starts, their waits, and their semaphores or barriers.

A copy and its wait are tied together by the semaphore alone: the descriptor that waits is often made anew, in another
function or another loop step, with other refs of the same size.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import PALLAS, integer, is_integer
from pallas_lint.kernels.model.trace import Access, Op, refs_in
from pallas_lint.kernels.model.values import NONE, UNKNOWN, CallResult, Ref, Seq, Value, as_tuple
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.trace import KernelTrace

_MODULES = ("", "tpu.")
LOCAL = frozenset(f"{PALLAS}.{module}{name}" for module in _MODULES for name in ("make_async_copy", "async_copy"))
REMOTE = frozenset(
    f"{PALLAS}.{module}{name}" for module in _MODULES for name in ("make_async_remote_copy", "async_remote_copy")
)
GPU = f"{PALLAS}.mosaic_gpu"
TO_SMEM = f"{GPU}.copy_gmem_to_smem"
TO_GMEM = f"{GPU}.copy_smem_to_gmem"
WAIT_TO_GMEM = f"{GPU}.wait_smem_to_gmem"
COMMIT_SMEM = f"{GPU}.commit_smem"
_BARRIER_WAITS = frozenset((f"{GPU}.barrier_wait", f"{GPU}.barrier_test"))
# Functions that arrive at a barrier, now or when the tensor cores are done, with the position of the barrier.
_BARRIER_ARRIVES = {f"{GPU}.barrier_arrive": 0, f"{GPU}.tcgen05_commit_arrive": 0, f"{GPU}.tcgen05_mma": 3}
_PLAIN = frozenset(("src", "dst", "barrier"))
_METHODS = frozenset(("start", "wait", "wait_send", "wait_recv"))


@frozen(eq=False)
class BarrierSignal:
    """The start of a copy that signals `semaphore`, an arrival at a barrier, or a wait. `at` counts events."""

    kind: Literal["start", "arrive", "wait"]
    semaphore: Value
    op: Op
    at: int
    source: Value = UNKNOWN
    target: Value = UNKNOWN

    @property
    def ref(self) -> Ref | None:
        """The semaphore, where it is certainly one buffer of this kernel."""
        value = self.semaphore
        if not isinstance(value, Ref) or (value.role is None and value.owner):
            return None  # a pipeline's argument may be any ref of the kernel around it
        return value

    @property
    def slot(self) -> tuple[int, ...] | None:
        """The constant index into an array of semaphores; empty for the whole, None where it is not known."""
        ref = self.ref
        if ref is None or (ref.view and (ref.parent is None or ref.parent.view)):
            return None
        if not ref.view:
            return ()
        parts = as_tuple(ref.indexer)
        numbers = [part.value for part in parts if is_integer(part)]
        return tuple(numbers) if len(numbers) == len(parts) else None

    @property
    def conditions(self) -> tuple[object, ...]:
        """The conditions and loops around it."""
        return tuple(guard for guard in self.op.guards if guard.kind != "checkify")

    @property
    def in_loop(self) -> bool:
        return any(guard.kind == "loop" for guard in self.op.guards)

    @property
    def spelled(self) -> str:
        """ "sem", "sems.at[1]"."""
        ref = self.ref
        if ref is None:
            return "the semaphore"
        return f"{ref.parameter}.at[{', '.join(map(str, self.slot))}]" if self.slot else ref.parameter


@define(eq=False, slots=False)
class Copies:
    """All asynchronous copies of one kernel."""

    trace: KernelTrace
    signals: list[BarrierSignal] = field(factory=list)
    made: dict[object, Op] = field(factory=dict)  # descriptors made but not started, by place
    used: set[object] = field(factory=set)  # places whose descriptors were started or waited for

    @property
    def complete(self) -> bool:
        """Whether all that the kernel does is seen, so that what is not there is missing."""
        return self.trace.complete and self.trace.tracked_until is None

    @cached_property
    def foreign(self) -> set[tuple[str, object]]:
        """Semaphores that reach code which is not seen, or are counted by hand."""
        found = {event.ref.buffer for event in self.trace.accesses() if event.kind == "escape"}
        for op in self.trace.ops():
            if op.name.endswith((".semaphore_signal", ".semaphore_wait", ".semaphore_read")):
                found |= {ref.buffer for value in op.args for ref in refs_in(value)}
        return found

    def of(self, *kinds: str) -> Iterator[BarrierSignal]:
        return (signal for signal in self.signals if signal.kind in kinds)

    @cached_property
    def _by_semaphore(self) -> dict[tuple[str, object] | None, dict[tuple[int, ...], list[BarrierSignal]]]:
        """The signals by buffer (None: not known) and slot (empty: the whole, or not known): there may be thousands."""
        found: dict[tuple[str, object] | None, dict[tuple[int, ...], list[BarrierSignal]]] = {}
        for signal in self.signals:
            buffer = None if signal.ref is None else signal.ref.buffer
            found.setdefault(buffer, {}).setdefault(signal.slot or (), []).append(signal)
        return found

    def meeting(self, signal: BarrierSignal) -> Iterator[BarrierSignal]:
        """All that may concern the same semaphore, itself included, in no order."""
        if signal.ref is None:
            return iter(self.signals)
        slots = self._by_semaphore.get(signal.ref.buffer, {})
        alike = [slots.get((), ()), slots.get(signal.slot, ())] if signal.slot else slots.values()
        unknown = self._by_semaphore.get(None, {}).values()
        return itertools.chain.from_iterable((*alike, *unknown))

    @cached_property
    def sites(self) -> set[object]:
        """Where copies are described, started and waited for, by the keys of these places."""
        return {*self.made, *(signal.op.site.key for signal in self.signals)}

    def is_checkable(self, signal: BarrierSignal) -> bool:
        """Whether all that happens to the semaphore is seen."""
        ref = signal.ref
        if ref is None or ref.role not in ("scratch", None) or not self.trace.owns(ref):
            return False
        return ref.buffer not in self.foreign


def copies_of(trace: KernelTrace) -> Copies:
    """The asynchronous copies in a trace, in order."""
    copies = Copies(trace)
    for at, event in enumerate(trace.events):
        if not isinstance(event, Op):
            continue
        name, _, method = event.name.rpartition(".")
        if method in _METHODS and name in LOCAL | REMOTE:
            _method(copies, event, at, method)
        elif event.name in LOCAL | REMOTE:
            if ".make_" in event.name:
                copies.made.setdefault(event.site.key, event)
            else:
                copies.signals.extend(_signals("start", event, event, at))
        elif event.name == TO_SMEM:
            barrier = event.argument("barrier", 2)
            if barrier not in (None, NONE):
                copies.signals.append(BarrierSignal("start", barrier or UNKNOWN, event, at, *_ends(event)))
        elif event.name in _BARRIER_WAITS:
            copies.signals.append(BarrierSignal("wait", event.argument("barrier", 0) or UNKNOWN, event, at))
        elif event.name in _BARRIER_ARRIVES:
            barrier = event.argument("barrier", _BARRIER_ARRIVES[event.name])
            if barrier not in (None, NONE) or event.open:
                copies.signals.append(BarrierSignal("arrive", barrier or UNKNOWN, event, at))
    return copies


def _method(copies: Copies, op: Op, at: int, method: str) -> None:
    descriptor = op.args[0]
    if not isinstance(descriptor, CallResult):
        return
    copies.used.add(descriptor.site.key)
    kind: Literal["start", "wait"] = "start" if method == "start" else "wait"
    copies.signals.extend(_signals(kind, descriptor, op, at, method))


def _signals(
    kind: Literal["start", "wait"], descriptor: CallResult | Op, op: Op, at: int, method: str = ""
) -> Iterator[BarrierSignal]:
    name = descriptor.function if isinstance(descriptor, CallResult) else descriptor.name
    ends = _ends(descriptor)
    if name in LOCAL:
        yield BarrierSignal(kind, descriptor.argument("sem", 2) or UNKNOWN, op, at, *ends)
        return
    if method != "wait_recv":
        yield BarrierSignal(kind, descriptor.argument("send_sem", 2) or UNKNOWN, op, at, *ends)
    if method != "wait_send":
        yield BarrierSignal(kind, descriptor.argument("recv_sem", 3) or UNKNOWN, op, at, *ends)


def _ends(descriptor: CallResult | Op) -> tuple[Value, Value]:
    source = descriptor.argument("src_ref", 0) or descriptor.argument("src", 0) or UNKNOWN
    target = descriptor.argument("dst_ref", 1) or descriptor.argument("dst", 1) or UNKNOWN
    return source, target


# -- counting ------------------------------------------------------------------------------------------------------


@frozen(eq=False)
class Miscount:
    """A wait for more than was started before it, or a start too many, with the number of both up to there.

    `arrivals`: the start is one too many at a barrier with so many, no whole phase of which was awaited yet.
    """

    signal: BarrierSignal
    starts: int
    waits: int
    arrivals: int | None = None


def unmatched(copies: Copies) -> Iterator[BarrierSignal]:
    """Starts on semaphores on which nothing waits, and waits on those that nothing signals."""
    for signal in copies.of("start", "wait"):
        opposite = ("wait",) if signal.kind == "start" else ("start", "arrive")
        if copies.is_checkable(signal) and not any(other.kind in opposite for other in copies.meeting(signal)):
            yield signal


def miscounts(copies: Copies) -> Iterator[Miscount]:
    """Semaphores, slot by slot, of which the starts and waits do not come out even, each in order of execution.

    Only where all of them certainly run equally often: under the same conditions, in the same loops. Semaphores count
    bytes, so one wait may be for several copies; barriers count arrivals, and every wait takes as many as they were
    declared with.
    """
    groups: dict[object, list[BarrierSignal]] = {}
    for signal in copies.of("start", "wait"):
        if signal.ref is not None and signal.slot is not None and copies.is_checkable(signal):
            groups.setdefault((signal.ref.buffer, signal.slot), []).append(signal)
    for group in groups.values():
        if sum(1 for _ in copies.meeting(group[0])) > len(group) or len({signal.conditions for signal in group}) > 1:
            continue
        kinds = [signal.kind for signal in group]
        amounts = _amounts(group, copies) if all(signal.op.certain for signal in group) else None
        if amounts is None or "start" not in kinds or "wait" not in kinds:
            continue
        on_barrier = any(signal.op.name == TO_SMEM for signal in group)
        phase = amounts[kinds.index("wait")] if on_barrier else None
        left = 0
        for at, (signal, amount) in enumerate(zip(group, amounts, strict=True)):
            left += amount if signal.kind == "start" else -amount
            over = phase if phase is not None and left > phase else None
            if left < 0 or over is not None:
                yield Miscount(signal, kinds[:at].count("start"), kinds[: at + 1].count("wait"), over)
                break
        else:
            if left > 0:
                last = max(at for at, kind in enumerate(kinds) if kind == "start")
                yield Miscount(group[last], kinds.count("start"), kinds.count("wait"))


def _amounts(group: list[BarrierSignal], copies: Copies) -> list[int] | None:
    """How much each start brings and each wait takes; None where that is not known."""
    if all(signal.op.name in (TO_SMEM, f"{GPU}.barrier_wait") for signal in group):
        arrivals, starts = _arrivals(group, copies), warpgroups(group, copies.trace)
        if arrivals is None or starts is None:
            return None
        return [starts if signal.kind == "start" else arrivals for signal in group]
    names = {signal.op.name for signal in group}
    if not all(name in LOCAL or name.rpartition(".")[0] in LOCAL for name in names):
        return None  # what other devices send is not seen
    sizes = [_bits(signal.target) for signal in group]
    if None not in sizes:
        return [size for size in sizes if size is not None]
    first = group[0]
    alike = isinstance(first.target, Ref) and all(
        (signal.source, signal.target) == (first.source, first.target) for signal in group
    )
    return [1] * len(group) if alike else None


def _bits(target: Value) -> int | None:
    if not isinstance(target, Ref) or target.shape is None or target.dtype in (None, "semaphore"):
        return None
    sizes = [size for size in target.shape if isinstance(size, int)]
    return math.prod(sizes) * bits(target.dtype or "") if len(sizes) == len(target.shape) else None


def _arrivals(group: list[BarrierSignal], copies: Copies) -> int | None:
    """How many arrivals end a wait on a barrier, where all of them are these copies."""
    trace, barrier = copies.trace, group[0].ref
    if barrier is None or not trace.launch.arguments.keys().isdisjoint(("mesh", "cluster")):
        return None
    own = {signal.op for signal in group}
    for op in trace.ops():
        given = (*op.args, *(value for _, value in op.keywords))
        if op not in own and any(ref.buffer == barrier.buffer for value in given for ref in refs_in(value)):
            return None
    if any(len(signal.op.args) > 3 or not _PLAIN.issuperset(dict(signal.op.keywords)) for signal in group):
        return None  # collective copies arrive at the barriers of several blocks
    made = declaration(trace, barrier)
    if made is None:
        return None
    number = made.argument("num_arrivals", 0)
    return 1 if number is None else integer(number)


def warpgroups(group: list[BarrierSignal], trace: KernelTrace) -> int | None:
    """How many warpgroups start each of these copies; None where some may leave it to others."""
    number = trace.launch.argument("num_threads")
    if number in (None, NONE):
        return 1
    divided = any(signal.conditions for signal in group) or any(held.pipeline for held in trace.allocations)
    return None if divided else integer(number)


def declaration(trace: KernelTrace, barrier: Ref) -> CallResult | None:
    """`plgpu.Barrier(...)` in the scratch declarations of a launch."""
    declared, refs = trace.launch.scratch, [ref for ref in trace.refs if ref.role == "scratch"]
    if not isinstance(declared, Seq) or len(declared.items) != len(refs):
        return None
    made = next((m for m, ref in zip(declared.items, refs, strict=True) if ref.buffer == barrier.buffer), None)
    if not isinstance(made, CallResult) or not made.function.endswith(".Barrier") or made.open:
        return None
    return made


# -- what runs when ------------------------------------------------------------------------------------------------


def unequal_conditions(copies: Copies) -> Iterator[tuple[BarrierSignal, BarrierSignal]]:
    """A single start and the single wait for the same copy, of which one runs under more conditions than the other."""
    for start in copies.of("start"):
        copied = start.op.name == TO_SMEM or (start.op.name.endswith("_copy.start") and start.op.name not in REMOTE)
        if not copied or not copies.is_checkable(start):
            continue
        others = list(itertools.islice((other for other in copies.meeting(start) if other is not start), 2))
        if len(others) != 1 or others[0].kind != "wait" or not _is_same_copy(start, others[0], copies.trace):
            continue
        wait = others[0]
        if start.in_loop or wait.in_loop or not (start.op.certain and wait.op.certain):
            continue
        outer, inner = sorted((start.conditions, wait.conditions), key=len)
        if len(outer) < len(inner) and inner[: len(outer)] == outer:
            yield start, wait


def _is_same_copy(one: BarrierSignal, other: BarrierSignal, trace: KernelTrace) -> bool:
    """Whether both certainly concern copies of the same size: between the same refs, or of a block on its barrier."""
    if one.op.name == TO_SMEM:
        return trace.launch.arguments.keys().isdisjoint(("num_threads", "mesh", "cluster"))
    return isinstance(one.target, Ref) and one.target == other.target and one.source == other.source


@frozen(eq=False)
class EarlyUse:
    """`use` of what a copy brings, after `wait`, which the `other` copy on its semaphore may have ended."""

    wait: BarrierSignal
    other: BarrierSignal
    use: Access


def early_uses(copies: Copies) -> Iterator[EarlyUse]:
    """Data read between the two waits for two copies that are in flight on one semaphore."""
    in_order: dict[object, list[BarrierSignal]] = {}  # by semaphore
    for signal in copies.signals:
        if signal.ref is None or signal.slot is None or signal.in_loop or not signal.op.certain:
            continue
        if copies.is_checkable(signal):
            in_order.setdefault((signal.ref.buffer, signal.slot), []).append(signal)
    fours = [four for each in in_order.values() for four in zip(each, each[1:], each[2:], each[3:], strict=False)]
    for four in sorted(fours, key=lambda four: four[0].at):
        _, other, wait, last = four
        targets = [signal.target.buffer for signal in four if isinstance(signal.target, Ref)]
        if [signal.kind for signal in four] != ["start", "start", "wait", "wait"] or len(targets) < len(four):
            continue
        if targets[0] == targets[1] or targets[2] == targets[3] or len({signal.conditions for signal in four}) > 1:
            continue
        for event in copies.trace.events[wait.at : last.at]:
            if not isinstance(event, Access) or event.kind != "load" or event.ref.buffer != targets[2]:
                continue
            if event.site.key not in copies.sites:
                yield EarlyUse(wait, other, event)
