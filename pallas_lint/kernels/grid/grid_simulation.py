"""Simulation of a kernel's accesses to one buffer, over the grid in the order in which a TPU runs it."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from pallas_lint.identity import ById, iter_unique
from pallas_lint.kernels.grid.blocks import symbols_in
from pallas_lint.kernels.grid.grid_points import Point, axes_in, axis_of, terms_in
from pallas_lint.kernels.model.known_names import NUM_PROGRAMS, PROGRAM_ID
from pallas_lint.kernels.model.values import Array, Const, OneOf, Sym, Value
from pallas_lint.records import define, field, frozen
from pallas_lint.text.wording import listed, plural

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from pallas_lint.kernels.facts.buffer_uses import BufferHistory, BufferUse
    from pallas_lint.kernels.grid.blocks import Block, Grid
    from pallas_lint.kernels.grid.grid_points import LinearTerms
    from pallas_lint.kernels.model.trace import Guard, Op

    Happening = list[tuple[BufferUse, bool]]

_MAX_POINTS = 4096
_MAX_MODELS = 40
_MAX_OFFSET = 3  # of `n - 2` in a condition
_ADDITIONS = frozenset(("add", "subtract", "sub"))


@define(eq=False)
class SimulationCache:
    """What was made for one launch's grid: the steps by size, and what scalars are on any of them."""

    steps: dict[tuple[int, ...], Steps] = field(factory=dict)
    guards: dict[Hashable, bool | None] = field(factory=dict)
    indices: dict[Hashable, int | None] = field(factory=dict)
    _terms: dict[ById, LinearTerms] = field(factory=dict)

    def terms(self, value: Value) -> LinearTerms:
        """What a scalar depends on."""
        this = ById(value)
        known = self._terms.get(this)
        if known is None:
            known = self._terms[this] = terms_in(value)
        return known


@define(eq=False, slots=False)
class Steps:
    """One kernel on grids of definite size: which step visits which block, and what runs there."""

    grid: Grid
    sizes: tuple[int, ...]
    symbols: dict[Sym, int]
    cache: SimulationCache
    _guards: dict[Guard, tuple[tuple[int, ...], Hashable]] = field(factory=dict)
    _happening: dict[ById, dict[tuple[int, ...], Happening]] = field(factory=dict)
    _keys: dict[Block, list[tuple[object, ...]] | None] = field(factory=dict)
    _visits: dict[BufferHistory, list[Visit] | None] = field(factory=dict)
    _faults: dict[BufferHistory, list[Fault]] = field(factory=dict)
    _points: list[Point] = field(factory=list)
    _along: dict[tuple[int, ...], list[tuple[object, ...]]] = field(factory=dict)

    @cached_property
    def can_be(self) -> bool:
        """Whether sizes of one name are the same, and the steps are not too many."""
        known = zip(self.grid.sizes, self.sizes, strict=True)
        if any(isinstance(each, Sym) and self.symbols[each] != size for each, size in known):
            return False
        return 0 < math.prod(self.sizes) <= _MAX_POINTS

    def points(self) -> list[Point]:
        """Every step in order."""
        self._points = self._points or list(self.grid.points(self.sizes, self.symbols))
        return self._points

    def along(self, axes: tuple[int, ...]) -> list[tuple[object, ...]]:
        """The indices of each step along some axes, in order."""
        known = self._along.get(axes)
        if known is None:
            columns = [[point.indices[axis] for point in self.points()] for axis in axes]
            known = self._along[axes] = list(zip(*columns, strict=True)) if axes else [()] * len(self.points())
        return known

    def happening(self, uses: list[BufferUse]) -> dict[tuple[int, ...], Happening]:
        """For each step, by its indices, the uses that may happen there, in order, and whether they certainly do."""
        known = self._happening.get(ById(uses))
        if known is None:
            axes = sorted({axis for use in uses for guard in use.guards for axis in self._of(guard)[0]})
            by_axes: dict[tuple[object, ...], Happening] = {}
            result: dict[tuple[int, ...], Happening] = {}
            for key, point in zip(self.along(tuple(axes)), self.points(), strict=True):
                here = by_axes.get(key)
                if here is None:
                    outcomes = [(use, self.runs(use, point)) for use in uses]
                    here = by_axes[key] = [(use, happens is True) for use, happens in outcomes if happens is not False]
                result[point.indices] = here
            known = self._happening[ById(uses)] = result
        return known

    def keys(self, block: Block) -> list[tuple[object, ...]] | None:
        """Which block each step visits, in order: equal keys are the same block. None where that is not known."""
        if block not in self._keys:
            self._keys[block] = _block_keys(block, self)
        return self._keys[block]

    def runs(self, use: BufferUse, point: Point) -> bool | None:
        """Whether a use happens at a point; None where that is not known."""
        result: bool | None = True if use.access.certain else None
        for guard in use.guards:
            here = self._guard(guard, point)
            if here is False:
                return False
            if here is None:
                result = None
        return result

    def _of(self, guard: Guard) -> tuple[tuple[int, ...], Hashable]:
        """The axes of this grid that a condition reads, and its other operands."""
        known = self._guards.get(guard)
        if known is None:
            terms = self.cache.terms(guard.condition)
            axes = tuple(axis for axis in terms.axes if axis < len(self.sizes))
            known = self._guards[guard] = axes, self.fixed(terms, self.symbols)
        return known

    def _guard(self, guard: Guard, point: Point) -> bool | None:
        axes, fixed = self._of(guard)
        key = guard, fixed, tuple([point.indices[axis] for axis in axes])
        if key not in self.cache.guards:
            self.cache.guards[key] = point.runs((guard,))
        return self.cache.guards[key]

    def fixed(self, terms: LinearTerms, symbols: dict[Sym, int]) -> Hashable:
        """What a scalar depends on that is the same at each step."""
        sizes = tuple([self.sizes[axis] for axis in terms.sized if axis < len(self.sizes)])
        return sizes, tuple([symbols.get(symbol) for symbol in terms.symbols])

    def visits(self, buffer: BufferHistory) -> list[Visit] | None:
        """The steps with the buffer's memory and result at each, as if blocks kept what they hold when left."""
        if buffer not in self._visits:
            self._visits[buffer] = _visits_of(buffer, self)
        return self._visits[buffer]

    def faults(self, buffer: BufferHistory) -> list[Fault]:
        """What goes wrong with a buffer where its visits are known; the first fault of each kind."""
        if buffer not in self._faults:
            found = Simulation(buffer.uses, self, buffer.flushing).run(self.visits(buffer) or [])
            self._faults[buffer] = found
        return self._faults[buffer]


def models(
    grid: Grid,
    uses: list[BufferUse],
    blocks: list[Block],
    several: tuple[int, ...],
    cache: SimulationCache | None = None,
) -> list[Steps] | None:
    """The grid in its literal size, or in a few small sizes where it is not known; None where these prove nothing.

    Axes in `several` are taken to have more than one step. `cache`: what was made for this grid before.
    """
    choices: list[tuple[int, ...]] = []
    mentioned = {axis for use in uses for guard in use.guards for axis in axes_in(guard.condition, grid.launch)[0]}
    offset = _largest_offset(uses)
    large = math.prod(size for size in grid.sizes if isinstance(size, int)) > _MAX_POINTS // 8
    for axis, size in enumerate(grid.sizes):
        if isinstance(size, int):
            shrinks = large and size > 2 and axis not in mentioned and all(_moves_plainly(b, axis) for b in blocks)
            choices.append((2,) if shrinks else (size,))
        elif axis in mentioned and offset is None:
            return None
        elif axis in mentioned and offset is not None and offset > 1:
            choices.append((offset + 2, offset + 3))
        else:
            choices.append((2, 3) if axis in several else (1, 2, 3))
    cache = cache or SimulationCache()
    found = []
    for sizes in itertools.product(*choices):
        steps = cache.steps.get(sizes)
        if steps is None:
            steps = cache.steps[sizes] = Steps(grid, sizes, grid.model(sizes), cache)
        if steps.can_be:
            found.append(steps)
    if len(found) > _MAX_MODELS:
        found = found[:: len(found) // _MAX_MODELS + 1]
    return found or None


def _moves_plainly(block: Block, axis: int) -> bool:
    """Whether a block moves with each step of an axis, or with none: it then does so on a shorter axis too."""
    if block.ignores(axis):
        return True
    within = [value for value in block.indices or () if axis in axes_in(value, block.grid.launch)[0]]
    return len(within) == 1 and isinstance(within[0], Array) and _is_index(within[0], axis, block.grid)


def _is_index(value: Array, axis: int, grid: Grid) -> bool:
    op = value.origin
    return op is not None and op.name == PROGRAM_ID and axis_of(op, grid.launch) == axis


def _largest_offset(uses: list[BufferUse]) -> int | None:
    """The largest number that conditions add to indices and sizes, at least 1; None where small grids prove nothing.

    A few steps stand for any grid where conditions compare indices with 0, 1 or the grid's own sizes, `n - 2` too.
    """
    largest = 1
    for use in uses:
        for guard in use.guards:
            stack: list[Value] = [guard.condition]
            for value in iter_unique(stack):
                parts: tuple[Value, ...] = ()
                added = False
                if isinstance(value, Const):
                    if _exceeds(value, 1):
                        return None
                elif isinstance(value, Array) and value.origin is not None:
                    if value.origin.name not in (PROGRAM_ID, NUM_PROGRAMS):
                        parts, added = value.origin.args, value.origin.short in _ADDITIONS
                elif isinstance(value, Sym) and value.operation is not None:
                    parts, added = value.operation[1:] if value.operation[0] in "+-" else (), True
                elif isinstance(value, OneOf):
                    parts = value.options
                for part in parts:
                    if (
                        added
                        and isinstance(part, Const)
                        and type(part.value) is int
                        and not _exceeds(part, _MAX_OFFSET)
                    ):
                        largest = max(largest, abs(part.value))
                    else:
                        stack.append(part)
    return largest


def _exceeds(value: Const, limit: int) -> bool:
    number = value.value
    return isinstance(number, int | float) and not isinstance(number, bool) and abs(number) > limit


def _block_keys(block: Block, steps: Steps) -> list[tuple[object, ...]] | None:
    if block.indices is None:
        ignored = block.ignored_axes
        return None if ignored is None else _by_axes(ignored, steps)
    free = symbols_in(block.indices) - set(steps.symbols)
    tries = [None] if not free else [1009] if _is_linear(block.indices) else [1, 2, 1009]
    found: list[list[tuple[object, ...]]] = []
    for number in tries:
        symbols = {**steps.symbols, **({} if number is None else dict.fromkeys(free, number))}
        columns = [_column(value, steps, symbols) for value in block.indices]
        if any(column is None for column in columns):
            return None
        known = [column for column in columns if column is not None]
        found.append(list(zip(*known, strict=True)) if known else [()] * len(steps.points()))
    partitions = {tuple(_numbered(keys)) for keys in found} if len(found) > 1 else found
    return found[0] if len(partitions) == 1 else None


def _column(value: Value, steps: Steps, symbols: dict[Sym, int]) -> list[int] | None:
    """What one of an index map's results is at each step; None where that is not known."""
    terms = steps.cache.terms(value)
    axes = tuple([axis for axis in terms.axes if axis < len(steps.sizes)])
    fixed = ById(value), steps.fixed(terms, symbols)
    table: dict[tuple[object, ...], int] = {}  # by what the value hangs on: that is less than there are steps
    indices = [0] * len(steps.sizes)
    for at in itertools.product(*(range(steps.sizes[axis]) for axis in axes)):
        for axis, index in zip(axes, at, strict=True):
            indices[axis] = index
        point = Point(tuple(indices), steps.sizes, symbols, steps.grid.launch)
        here = _index(value, point, (*fixed, at), steps.cache)
        if here is None:
            return None
        table[at] = here
    return [table[at] for at in steps.along(axes)]


def _index(value: Value, point: Point, key: Hashable, cache: SimulationCache) -> int | None:
    if key not in cache.indices:
        here = point.value(value)
        cache.indices[key] = here if isinstance(here, int) else None
    return cache.indices[key]


def _by_axes(ignored: tuple[int, ...], steps: Steps) -> list[tuple[object, ...]]:
    return steps.along(tuple(axis for axis in range(len(steps.sizes)) if axis not in ignored))


def _numbered(keys: list[tuple[object, ...]]) -> Iterator[int]:
    numbers: dict[tuple[object, ...], int] = {}
    for key in keys:
        yield numbers.setdefault(key, len(numbers))


def _is_linear(values: tuple[Value, ...]) -> bool:
    """Whether indices come from sums and products only: a large number for each name then keeps blocks apart."""
    stack = list(values)
    for value in iter_unique(stack):
        if isinstance(value, Sym) and value.operation is not None:
            if value.operation[0] not in ("+", "-", "*"):
                return False
            stack.extend(value.operation[1:])
        elif isinstance(value, Array) and value.origin is not None and value.origin.name != PROGRAM_ID:
            if value.origin.short not in ("add", "sub", "subtract", "multiply", "mul"):
                return False
            stack.extend(value.origin.args)
    return True


def _visits_of(buffer: BufferHistory, steps: Steps) -> list[Visit] | None:
    keys = [steps.keys(block) for _, block in buffer.results]
    if any(key is None for key in keys):
        return None
    if not keys:
        return [Visit(point, None, None) for point in steps.points()]
    blocks = list(zip(*(key for key in keys if key is not None), strict=True))
    return list(map(Visit, steps.points(), blocks if buffer.is_output else itertools.repeat(None), blocks))


def tested_axes(guards: tuple[Guard, ...], grid: Grid) -> tuple[int, ...]:
    """The axes of this grid that conditions read."""
    return tuple(sorted({axis for guard in guards for axis in axes_in(guard.condition, grid.launch)[0]}))


def axes_text(axes: tuple[int, ...]) -> str:
    """ "axis 2", "axes 1 and 2"."""
    return f"{plural('axis', len(axes))} {listed([*map(str, axes)])}"


def step_text(point: Point) -> str:
    """ "grid step (0, 1)"."""
    return f"grid step {point.indices}"


def program_ids(guard: Guard, grid: Grid) -> list[Op]:
    """The `program_id` and `num_programs` operations of this grid behind a condition."""
    found: list[Op] = []
    stack: list[Value] = [guard.condition]
    for value in iter_unique(stack):
        if not isinstance(value, Array) or value.origin is None:
            continue
        if value.origin.name in (PROGRAM_ID, NUM_PROGRAMS) and axis_of(value.origin, grid.launch) is not None:
            found.append(value.origin)
        else:
            stack.extend(value.origin.args)
    return found


# -- what goes wrong -----------------------------------------------------------------------------------------------

FaultKind = Literal["unset", "lost", "unwritten", "late"]


class Visit(NamedTuple):
    """A step of the grid, the memory that the buffer is in there, and the block of results that the step computes."""

    point: Point
    memory: object
    block: object


@frozen(eq=False)
class Fault:
    """What goes wrong at one step with one use. `sure`: whether that use certainly happens.

    "unset": the buffer is read or updated, and nothing has set it; "lost": it is set anew while what was added to it
    has gone nowhere; "late": it was read for the last time before the last update; "unwritten": no step writes it.
    """

    kind: FaultKind
    use: BufferUse
    point: Point
    sure: bool = True


@define
class _Memory:
    is_set: bool = False
    is_written: bool = False
    updated: object = None  # the block for which it was updated since it was set or read for good
    pending: bool = False  # ... and not written to a result since
    flushed: tuple[BufferUse, object] | None = None  # the last read that went into a result, and its block
    carried: bool = False  # a result rested on what was updated for another block: a state, no sum for one block
    dropped: tuple[Fault, object] | None = None  # an update was thrown away: a fault if the block is written without it


@define(slots=False)
class Simulation:
    """Runs the uses of one buffer in order.

    `flushing`: the outputs of which a later write replaces an earlier one; None where the buffer is an output itself.
    """

    uses: list[BufferUse]
    steps: Steps
    flushing: frozenset[tuple[str, object]] | None
    found: dict[tuple[FaultKind, bool], Fault] = field(factory=dict)

    def run(self, visits: list[Visit]) -> list[Fault]:
        """The first fault of each kind."""
        memories: dict[object, _Memory] = {}
        first: dict[object, Point] = {}
        happening = self.steps.happening(self.uses)
        for visit in visits:
            memory = memories.get(visit.memory)
            if memory is None:
                memory = memories[visit.memory] = _Memory()
                first[visit.memory] = visit.point
            for use, surely in happening[visit.point.indices]:
                self._use(memory, use, visit, surely=surely)
        writes = [use for use in self.uses if use.kind != "read"]
        for key, memory in memories.items():
            self._check_late(memory, first[key])
            if not memory.is_written and writes:
                self._report(Fault("unwritten", writes[0], first[key]))
        return list(self.found.values())

    def first_unset(self, memories: Iterable[tuple[Point, object]]) -> Fault | None:
        """The first fault of this kind alone, where the buffer is in these memories at these steps."""
        is_set: set[object] = set()
        happening = self.steps.happening(self.uses)
        for point, memory in memories:
            here = happening[point.indices]
            if here and memory not in is_set:
                use, surely = here[0]
                if use.kind in ("read", "update"):
                    return Fault("unset", use, point, surely)
                is_set.add(memory)
        return None

    @cached_property
    def _serves_others(self) -> bool:
        """Whether the kernel reads the buffer for others: an output that is working memory, as a running maximum is."""
        return any(use.kind == "read" and bool(use.into - {use.access.ref.buffer}) for use in self.uses)

    def _report(self, fault: Fault) -> None:
        self.found.setdefault((fault.kind, fault.sure), fault)

    def _use(self, memory: _Memory, use: BufferUse, visit: Visit, *, surely: bool) -> None:
        if use.rests_on_value and not memory.is_set:
            self._report(Fault("unset", use, visit.point, surely))
        if use.kind == "read":
            self._read(memory, use, visit, surely=surely)
            return
        memory.is_written = True
        if use.kind == "update":
            if surely:
                memory.updated, memory.pending = visit.block, True
            return
        if use.kind == "set" and surely and memory.updated is not None:
            if memory.updated == visit.block:
                lost = Fault("lost", use, visit.point)
                if self.flushing is None and not self._serves_others:
                    self._report(lost)
                memory.dropped = (lost, visit.block)
            else:
                self._check_late(memory, visit.point)
        memory.is_set, memory.updated, memory.pending = True, None, False

    def _read(self, memory: _Memory, use: BufferUse, visit: Visit, *, surely: bool) -> None:
        flushes = self.flushing is not None and bool(use.into) and use.into <= self.flushing
        if flushes and surely:
            if memory.dropped is not None and memory.dropped[1] == visit.block:
                self._report(memory.dropped[0])
            memory.carried |= memory.pending and memory.updated != visit.block
            memory.flushed = (use, visit.block)
        else:
            memory.updated = memory.dropped = None
        memory.pending = False

    def _check_late(self, memory: _Memory, point: Point) -> None:
        """At the end, or where the buffer is set for the next block."""
        if memory.carried or not memory.pending or memory.flushed is None:
            return
        if memory.flushed[1] == memory.updated:
            self._report(Fault("late", memory.flushed[0], point))
