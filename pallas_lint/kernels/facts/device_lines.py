"""Event traces of each device of a launch, for the model of copies in `pallas_lint.probe.interleaving`.

Only kernels of which the text gives all that decides the order are laid out: grid and loops of known sizes, conditions
and device ids that are computed of their indices, slices of known sizes.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from pallas_lint.identity import ById, iter_unique
from pallas_lint.kernels.facts.copies import LOCAL, REMOTE, copies_of
from pallas_lint.kernels.facts.devices import DevicePoint, axes_around
from pallas_lint.kernels.facts.loop_unrolling import is_loop_of, recorded_iterations
from pallas_lint.kernels.grid.blocks import grid_of
from pallas_lint.kernels.grid.grid_points import Point, loops_in
from pallas_lint.kernels.library.operands import leaves
from pallas_lint.kernels.model.dtypes import bits
from pallas_lint.kernels.model.known_names import BARRIER_SEMAPHORE, PALLAS, integer, name_of
from pallas_lint.kernels.model.trace import LOOP_CARRY, Access, Op
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    NONE,
    Array,
    CallResult,
    Const,
    Dictionary,
    Ref,
    Seq,
    Slice,
    Value,
    as_tuple,
    from_dim,
)
from pallas_lint.probe.interleaving.events import Copy, EventTraces, MemoryAccess, Region, Semaphore, Signal, Wait
from pallas_lint.records import define, evolve, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pallas_lint.kernels.model.trace import Guard, KernelTrace
    from pallas_lint.kernels.model.values import Sym
    from pallas_lint.probe.cost.causes import Place
    from pallas_lint.probe.interleaving.events import Event, Kind
    from pallas_lint.syntax import Site

_COPIES = LOCAL | REMOTE
_MAX_EVENTS = 20_000  # of all lines
_MAX_ITERATIONS = 4096  # of a `while_loop`
_MAX_DEVICES = 16
_SIGNALS = (f"{PALLAS}.semaphore_signal", f"{PALLAS}.tpu.semaphore_signal")
_WAITS = (f"{PALLAS}.semaphore_wait", f"{PALLAS}.tpu.semaphore_wait")


class _NotLaidOut(Exception):
    """Something that decides the order is not known."""


@frozen
class DeviceLines:
    """The lines, and the places of their events in the text."""

    traces: EventTraces
    sites: dict[tuple[str, int, int], Site]  # by file, line and column

    def site(self, place: Place) -> Site:
        return self.sites[_key(place)]


def device_lines(
    trace: KernelTrace, shared: int | None, symbols: Mapping[Sym, int] | None = None
) -> DeviceLines | None:
    """The kernel on each device of its mesh; on each of two cores where these share an axis of the grid.

    `symbols`: what sizes that have only names are taken to be. None where the text leaves open what decides the order
    of copies.
    """
    try:
        return _Layout(trace, shared, symbols or {}).lines()
    except _NotLaidOut:
        return None


@define(eq=False)
class _Layout:
    trace: KernelTrace
    shared: int | None  # the axis of the grid that two cores share
    symbols: Mapping[Sym, int]
    axes: dict[str, int] = field(factory=dict)
    line: int = 0
    step: str = ""
    events: list[Event] = field(factory=list)
    sites: dict[tuple[str, int, int], Site] = field(factory=dict)
    count: int = 0
    indices: dict[ById, set[Op]] = field(factory=dict)  # of each loop, as they occur in its events
    # Of what copies on each semaphore write, where no size is known.
    parts: dict[tuple[object, ...], object] = field(factory=dict)
    of_copies: set[object] = field(factory=set)  # buffers of semaphores that copies signal
    copied: set[object] = field(factory=set)  # places where copies are described: what they access is no access there

    def lines(self) -> DeviceLines:
        trace = self.trace
        grid = self._grid()
        if not trace.complete or trace.tracked_until is not None or trace.runs_foreign_code:
            raise _NotLaidOut
        copies = copies_of(trace)
        self.copied = copies.sites
        self.of_copies = {signal.ref.buffer for signal in copies.signals if signal.ref is not None}
        remote = any(op.name.partition(".start")[0] in REMOTE or op.name in _SIGNALS for op in trace.ops())
        mesh = axes_around(trace.launch) if remote else {}
        if mesh is None or None in mesh.values():
            raise _NotLaidOut
        self.axes = {axis: size for axis, size in mesh.items() if size is not None}
        places = list(itertools.product(*(range(size) for size in self.axes.values())))
        if len(places) > _MAX_DEVICES:
            raise _NotLaidOut
        cores = 1 if self.shared is None else 2
        result: list[list[Event]] = []
        names = []
        events = [(at, event) for at, event in enumerate(trace.events) if isinstance(event, Op | Access)]
        for device, place in enumerate(places):
            for core in range(cores):
                self.line, self.events = len(result), []
                for number, indices in enumerate(itertools.product(*map(range, grid))):
                    if self.shared is not None and indices[self.shared] * 2 // grid[self.shared] != core:
                        continue
                    self.step = f"step {number}" if math.prod(grid) > 1 else ""
                    point = DevicePoint(
                        indices,
                        grid,
                        self.symbols,
                        trace.launch,
                        {},
                        dict(zip(self.axes, place, strict=True)),
                        self.axes,
                    )
                    self._run(events, point, 0, number)
                result.append(self.events)
                names.append(f"device {device}" + (f", core {core}" if cores > 1 else ""))
        return DeviceLines(EventTraces(result, names, self.axes), self.sites)

    def _grid(self) -> tuple[int, ...]:
        grid = grid_of(self.trace.launch)
        if self.trace.launch.grid is None and grid is None:
            return ()
        here = Point((), (), self.symbols)
        found = [here.value(from_dim(size)) for size in grid.sizes] if grid is not None else [None]
        sizes = tuple(size for size in found if isinstance(size, int) and size >= 0)
        if len(sizes) < len(found) or math.prod(sizes) > _MAX_EVENTS:
            raise _NotLaidOut
        return sizes

    # -- loops and conditions --------------------------------------------------------------------------------------

    def _run(self, events: Sequence[tuple[int, Access | Op]], point: DevicePoint, depth: int, step: int) -> None:
        at = 0
        while at < len(events):
            loops = [guard for guard in events[at][1].guards if guard.kind == "loop"]
            if len(loops) == depth:
                self._event(events[at][1], point, step)
                at += 1
                continue
            end = at
            while end < len(events) and _loop_at(events[end][1], depth) == loops[depth]:
                end += 1
            inside = events[at:end]
            at = end
            if loops[depth].exact:
                self._run(inside, point, depth + 1, step)
                continue
            if not any(self._matters(event) for _, event in inside):
                continue
            counted = self._steps(loops[depth], inside, point)
            if counted is None:
                if any(isinstance(event, Op) and self._matters(event) for _, event in inside):
                    raise _NotLaidOut  # it is not known how often they are
                continue  # accesses alone: what is left out cannot go wrong
            index, steps = counted
            recorded, carried = recorded_iterations(inside, depth), self._carried(loops[depth])
            carry = {op: point.value(op.args[0]) for op in carried}
            for iteration in steps:
                known = {op: value for op, value in carry.items() if isinstance(value, int)}
                here = evolve(point, loops={**point.loops, **dict.fromkeys(index, iteration), **known})
                if not index and not self._goes_on(loops[depth], here, iteration):
                    break
                self._run(recorded[(iteration - steps.start) % len(recorded)], here, depth + 1, step)
                carry = {op: here.value(result) for op, result in carried.items()}

    @staticmethod
    def _goes_on(loop: Guard, here: DevicePoint, iteration: int) -> bool:
        """Whether a `while_loop` has another iteration."""
        goes_on = here.value(loop.condition)
        if not isinstance(goes_on, bool) or iteration == _MAX_ITERATIONS - 1:
            raise _NotLaidOut
        return goes_on

    def _carried(self, loop: Guard) -> dict[Op, Value]:
        """The numbers that a loop carries, by their origins, and what its body returns for them."""
        found: dict[Op, Value] = {}
        for agreement in self.trace.agreements():
            around = [guard for guard in agreement.guards if guard.kind == "loop"]
            if agreement.kind == "carry" and around and around[-1] == loop:
                entering, returned = (list(leaves(value)) for value in agreement.values)
                pairs = zip(entering, returned, strict=False) if len(entering) == len(returned) else ()
                found |= {
                    one.origin: other for one, other in pairs if isinstance(one, Array) and one.origin is not None
                }
        return {op: value for op, value in found.items() if op.name == LOOP_CARRY}

    def _steps(
        self, loop: Guard, events: Sequence[tuple[int, Access | Op]], point: DevicePoint
    ) -> tuple[set[Op], range] | None:
        """The index of a loop, as it occurs in the events, and what it counts; a `while_loop` has none.

        None where the number of iterations is not known.
        """
        own = self.indices.get(ById(loop))
        if own is None:
            found = {op for _, event in events for value in _values_of(event) for op in loops_in(value)}
            own = self.indices[ById(loop)] = {op for op in found if is_loop_of(loop, op)}
        if not own and isinstance(loop.condition, Array) and loop.condition.dtype == "bool":
            return own, range(_MAX_ITERATIONS)
        bounds = {(point.value(op.args[0]), point.value(op.args[1])) for op in own}
        if len(bounds) != 1:
            return None
        [(first, end)] = bounds
        return (own, range(first, end)) if isinstance(first, int) and isinstance(end, int) else None

    # -- events ----------------------------------------------------------------------------------------------------

    def _event(self, event: Access | Op, point: DevicePoint, step: int) -> None:
        runs = point.runs(event.guards)
        if runs is None:
            if self._matters(event):
                raise _NotLaidOut
            return
        if not runs:
            return
        if isinstance(event, Access):
            self._access(event, point, step)
            return
        name, _, method = event.name.rpartition(".")
        if method in ("start", "wait", "wait_send", "wait_recv") and name in _COPIES:
            descriptor = event.args[0]
            if not isinstance(descriptor, CallResult):
                raise _NotLaidOut
            self._copy(descriptor, event, name in REMOTE, method, point, step)
        elif event.name in _COPIES and ".make_" not in event.name:
            self._copy(event, event, event.name in REMOTE, "start", point, step)
        elif event.name in _SIGNALS:
            self._signal(event, point)
        elif event.name in _WAITS:
            self._wait(event, point)

    def _matters(self, event: Access | Op) -> bool:
        if isinstance(event, Access):
            return event.site.key not in self.copied
        name = event.name.rpartition(".")[0]
        return name in _COPIES or event.name in _COPIES or event.name in (*_SIGNALS, *_WAITS)

    def _add(self, event: Event) -> None:
        self.count += 1
        if self.count > _MAX_EVENTS:
            raise _NotLaidOut
        self.events.append(event)

    def _place(self, site: Site) -> Place:
        span = site.span
        place: Place = {"file": span.path, "line": span.start.line, "column": span.start.column}
        self.sites[_key(place)] = site
        return place

    def _access(self, access: Access, point: DevicePoint, step: int) -> None:
        if access.kind == "escape":
            raise _NotLaidOut
        if access.kind == "delete" or access.site.key in self.copied or access.ref.dtype == "semaphore":
            return
        if access.ref.role not in ("scratch", "in", "out") and not self._is_scoped(access.ref):
            return
        region = self._region(access.ref, access.index, point, step)
        if not region.exact:
            return
        place = self._place(access.site)
        if access.kind in ("load", "accumulate"):
            self._add(MemoryAccess(place, self.step, region, writes=False))
        if access.kind in ("store", "accumulate"):
            self._add(MemoryAccess(place, self.step, region, writes=True))

    def _copy(self, made: CallResult | Op, op: Op, remote: bool, method: str, point: DevicePoint, step: int) -> None:
        source = made.argument("src_ref", 0) or made.argument("src", 0)
        target = made.argument("dst_ref", 1) or made.argument("dst", 1)
        if not isinstance(source, Ref) or not isinstance(target, Ref):
            raise _NotLaidOut
        to = self._device(made, point) if remote and method == "start" else self.line
        reads, writes = self._region(source, None, point, step), self._region(target, None, point, step, to)
        scattered = _numbering(target) is not None
        place = self._place(op.site)
        numbered = (self._region(each, None, point, step) for each in map(_numbering, (source, target)) if each)
        received = self._semaphore(made.argument("recv_sem" if remote else "sem", 3 if remote else 2), point, to)
        sent = self._semaphore(made.argument("send_sem", 2), point) if remote else None
        moved, region = (source, reads) if scattered else (target, writes)
        size = self._amount(_bytes(moved, point), region, received)
        if method == "start":
            self._add(Copy(place, self.step, (reads, *numbered), (writes,), size, received, sent))
            return
        if sent is not None and method != "wait_recv":
            self._add(Wait(place, self.step, sent, size))
        if method != "wait_send":
            self._add(Wait(place, self.step, received, size))

    def _amount(self, size: int | None, region: Region, semaphore: Semaphore) -> int:
        """What a copy adds to its semaphore: 1 where all on it are of parts alike, of a size that is not known."""
        part = (region.buffer, tuple(size for _, size, _ in region.box)) if size is None else None
        if self.parts.setdefault((semaphore.name, semaphore.index), part) != part:
            raise _NotLaidOut
        return 1 if size is None else size

    def _signal(self, op: Op, point: DevicePoint) -> None:
        amount = point.value(op.argument("inc", 1) or Const(1))
        if not isinstance(amount, int) or op.argument("core_index") not in (None, NONE):
            raise _NotLaidOut
        to = self._device(op, point) if op.argument("device_id") not in (None, NONE) else self.line
        semaphore = self._semaphore(op.argument("sem", 0), point, to)
        self._add(Signal(self._place(op.site), self.step, semaphore, amount))

    def _wait(self, op: Op, point: DevicePoint) -> None:
        amount = point.value(op.argument("value", 1) or op.argument("dec", 1) or Const(1))
        semaphore = self._semaphore(op.argument("sem", 0), point)
        if not isinstance(amount, int) or semaphore.kind == "dma":  # what a copy adds to a regular one is not bytes
            raise _NotLaidOut
        self._add(Wait(self._place(op.site), self.step, semaphore, amount))

    def _device(self, made: CallResult | Op, point: DevicePoint) -> int:
        """The line of the device that a copy or a signal goes to."""
        given = made.argument("device_id", 4) if isinstance(made, CallResult) else made.argument("device_id")
        if given is None or self.shared is not None:
            raise _NotLaidOut
        sizes = list(self.axes.values())
        if isinstance(given, Dictionary):
            named = {key.value: value for key, value in given.items if isinstance(key, Const)}
            numbers = [point.value(named[axis]) if axis in named else point.coordinates[axis] for axis in self.axes]
        else:
            numbers = [point.value(part) for part in leaves(given)]
        if len(numbers) == 1 and name_of(made.argument("device_id_type")).endswith("LOGICAL"):
            sizes = [math.prod(sizes)]
        if len(numbers) != len(sizes):
            raise _NotLaidOut
        line = 0
        for number, size in zip(numbers, sizes, strict=True):
            if not isinstance(number, int) or not 0 <= number < size:
                raise _NotLaidOut
            line = line * size + number
        return line

    def _semaphore(self, value: Value | None, point: DevicePoint, to: int | None = None) -> Semaphore:
        """A semaphore of this line, or of another."""
        home = self.line if to is None else to
        if isinstance(value, CallResult) and value.function == BARRIER_SEMAPHORE:
            return Semaphore(home, "barrier", (), "barrier")
        if not isinstance(value, Ref) or not (self._is_scoped(value) or (value.role == "scratch" and not value.owner)):
            raise _NotLaidOut
        numbers = [point.value(part) for index in _path(value)[1] for part in as_tuple(index)]
        index = tuple(number for number in numbers if isinstance(number, int))
        if len(index) != len(numbers):
            raise _NotLaidOut
        kind: Kind = "dma" if value.buffer in self.of_copies else "regular"
        return Semaphore(home, value.parameter, index, kind)

    def _is_scoped(self, ref: Ref) -> bool:
        """Whether a `run_scoped` of this kernel, outside loops, has allocated the buffer."""
        return ref.owner is not None and self.trace.owns(ref)

    def _region(self, ref: Ref, index: Value | None, point: DevicePoint, step: int, to: int | None = None) -> Region:
        """The part of a buffer that a view, or an access to it, is of: of this line's, or of another's."""
        if ref.owner is not None and not self._is_scoped(ref):
            raise _NotLaidOut
        root, indices = _path(ref)
        if index is not None and not (indices and (index == ELLIPSIS or _is_all(index))):
            indices.append(index)
        box = _nested_box(indices, _sizes(root, point), point)
        moves = root.role in ("in", "out") and root.space not in ("hbm", "any")
        buffer = (root.buffer, step) if moves else root.buffer
        return Region(
            self.line if to is None else to,
            buffer,
            root.parameter,
            tuple(whole for *_, whole in box),
            tuple((start, size, 1) for start, size, _ in box),
            root.space or "vmem",
        )


def _key(place: Place) -> tuple[str, int, int]:
    return place["file"], place["line"], place.get("column") or 0


def _loop_at(event: Access | Op, depth: int) -> Guard | None:
    loops = [guard for guard in event.guards if guard.kind == "loop"]
    return loops[depth] if len(loops) > depth else None


def _values_of(event: Access | Op) -> Iterator[Value]:
    """The values that a loop's index may go into."""
    yield from (guard.condition for guard in event.guards)
    stack: list[Value] = [event.index] if isinstance(event, Access) else [*event.args, *dict(event.keywords).values()]
    for value in iter_unique(stack):
        if isinstance(value, Ref):
            stack.extend(part for part in (value.indexer, value.parent) if part is not None)
        elif isinstance(value, Seq):
            stack.extend(value.items)
        elif isinstance(value, CallResult):
            stack.extend((*value.args, *dict(value.keywords).values()))
        else:
            yield value


def _is_all(index: Value) -> bool:
    parts = as_tuple(index)
    return all(
        part == ELLIPSIS or (isinstance(part, Slice) and part.size is None and part.start == part.stop == NONE)
        for part in parts
    )


def _sizes(ref: Ref, point: DevicePoint) -> tuple[int | None, ...] | None:
    """The shape of a buffer, with None for sizes that are not known."""
    if ref.shape is None:
        return None
    found = (point.value(from_dim(size)) for size in ref.shape)
    return tuple(size if isinstance(size, int) else None for size in found)


def _path(ref: Ref) -> tuple[Ref, list[Value]]:
    """The buffer that a view is of, and the indices that lead to it: `buf.at[slot].at[rows]` has two."""
    indices: list[Value] = []
    while ref.view:
        if ref.parent is None or ref.indexer is None:
            raise _NotLaidOut
        indices.insert(0, ref.indexer)
        ref = ref.parent
    return ref, indices


_Interval = tuple[int | None, int, int]  # start, size, and the size of the dimension
_EVERYTHING = Slice(NONE, NONE, NONE)


def _box(index: Value | None, shape: tuple[int | None, ...] | None, point: DevicePoint) -> tuple[_Interval, ...]:
    """The interval of each dimension; of a shape that is not known, of those that are indexed."""
    parts = _parts(index, None if shape is None else len(shape))
    shape = (None,) * len(parts) if shape is None else shape
    return tuple(_interval(part, size, point) for part, size in zip(parts, shape, strict=True))


def _parts(index: Value | None, rank: int | None) -> list[Value]:
    """One index for each dimension; of a shape that is not known, for those that are indexed."""
    parts: list[Value] = [] if index is None else [*index.items] if isinstance(index, Seq) else [index]
    if isinstance(index, Seq) and (index.open or index.kind == "list"):
        raise _NotLaidOut
    if rank is None:
        if ELLIPSIS in parts[:-1]:
            raise _NotLaidOut
        rank = len(parts)
    if ELLIPSIS in parts:
        at = parts.index(ELLIPSIS)
        parts[at : at + 1] = [_EVERYTHING] * (rank - len(parts) + 1)
    parts += [_EVERYTHING] * (rank - len(parts))
    if len(parts) != rank:
        raise _NotLaidOut
    return parts


def _nested_box(
    indices: list[Value], shape: tuple[int | None, ...] | None, point: DevicePoint
) -> tuple[_Interval, ...]:
    """The interval of each dimension after several indices, each of what the one before leaves."""
    box = [*_box(indices[0] if indices else None, shape, point)]
    if len(indices) < 2:
        return tuple(box)
    if shape is None:
        raise _NotLaidOut
    left = [*range(len(shape))]
    for index, inner in itertools.pairwise(indices):
        parts = _parts(index, len(left))
        if any(isinstance(part, Ref) for part in parts):
            raise _NotLaidOut  # rows that it numbers
        left = [at for at, part in zip(left, parts, strict=True) if isinstance(part, Slice)]
        for at, (start, size, _) in zip(left, _box(inner, tuple(box[at][1] for at in left), point), strict=True):
            outer, whole, _ = box[at]
            if shape[at] is None and (start, size) != (0, whole):
                raise _NotLaidOut  # one element stands for all
            box[at] = (None if outer is None or start is None else outer + start, size, box[at][2])
    return tuple(box)


def _numbering(ref: Ref) -> Ref | None:
    """The reference whose numbers select the rows that a copy takes or writes."""
    index = ref.indexer if ref.view else None
    parts = as_tuple(index)
    return next((part for part in parts if isinstance(part, Ref)), None)


def _interval(part: Value, whole: int | None, point: DevicePoint) -> _Interval:
    if part == _EVERYTHING:  # one element stands for all, where their number is not known
        return 0, whole or 1, whole or 1
    if isinstance(part, Ref):  # rows that it numbers
        return None, _known(whole), _known(whole)
    start, size = _slice(part, whole, point) if isinstance(part, Slice) else (_element(part, point), 1)
    return start, size, (start or 0) + size + 1 if whole is None else whole


def _slice(part: Slice, whole: int | None, point: DevicePoint) -> tuple[int | None, int]:
    start = 0 if part.start == NONE else point.value(part.start)
    if part.size is not None:
        size = point.value(part.size)
    else:
        stop = _known(whole) if part.stop == NONE else point.value(part.stop)
        size = stop - start if isinstance(start, int) and isinstance(stop, int) else None
    if not isinstance(size, int) or part.step not in (NONE, Const(1)):
        raise _NotLaidOut
    return (start if isinstance(start, int) else None), size


def _element(part: Value, point: DevicePoint) -> int | None:
    if not isinstance(part, Const | Array) and integer(part) is None and not hasattr(part, "operation"):
        raise _NotLaidOut
    if isinstance(part, Array) and part.shape not in ((), None):
        raise _NotLaidOut
    at = point.value(part)
    return at if isinstance(at, int) else None


def _known(size: int | None) -> int:
    if size is None:
        raise _NotLaidOut
    return size


def _bytes(ref: Ref, point: DevicePoint) -> int | None:
    """The size of what a copy writes; None where it is not known."""
    sizes = _sizes(ref, point)
    if sizes is None or None in sizes or ref.dtype is None:
        return None
    return math.prod(map(_known, sizes)) * bits(ref.dtype) // 8
