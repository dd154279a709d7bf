"""What a kernel does to one buffer, step by step over the grid in the order in which a TPU runs it."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Literal

from attrs import define, field, frozen

from pallas_lint.kernels.blocks import symbols_in
from pallas_lint.kernels.grid_points import NUM_PROGRAMS, PROGRAM_ID, Point, axes_in, axis_of
from pallas_lint.kernels.values import Array, Choice, Const, Sym, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.blocks import Block, Grid
    from pallas_lint.kernels.trace import Guard, Op
    from pallas_lint.kernels.uses import Buffer, Use

_MOST_POINTS = 4096
_MOST_MODELS = 40


@define(eq=False)
class Steps:
    """One kernel on grids of definite size: which step visits which block, and what runs there."""

    grid: Grid
    sizes: tuple[int, ...]
    symbols: dict[Sym, int]
    _known: dict[tuple[int, tuple[int, ...]], bool | None] = field(factory=dict)
    _axes: dict[int, tuple[tuple[int, ...], Guard]] = field(factory=dict)

    def points(self) -> Iterator[Point]:
        return self.grid.points(self.sizes, self.symbols)

    def runs(self, use: Use, point: Point) -> bool | None:
        """Whether a use happens at a point; None where that is not known."""
        result: bool | None = True if use.access.certain else None
        for guard in use.guards:
            here = self._guard(guard, point)
            if here is False:
                return False
            if here is None:
                result = None
        return result

    def _guard(self, guard: Guard, point: Point) -> bool | None:
        known = self._axes.get(id(guard))
        if known is None:
            known = self._axes[id(guard)] = (tuple(sorted(axes_in(guard.condition)[0])), guard)
        key = (id(guard), tuple(point.indices[axis] for axis in known[0] if axis < len(point.indices)))
        if key not in self._known:
            self._known[key] = point.runs((guard,))
        return self._known[key]


def models(grid: Grid, uses: list[Use], blocks: list[Block], several: tuple[int, ...]) -> list[Steps] | None:
    """The grid in its literal size, or in a few small sizes where it is not known; None where none would tell.

    Axes in `several` are taken to have more than one step.
    """
    choices: list[tuple[int, ...]] = []
    mentioned = {axis for use in uses for guard in use.guards for axis in axes_in(guard.condition)[0]}
    large = math.prod(size for size in grid.sizes if isinstance(size, int)) > _MOST_POINTS // 8
    for axis, size in enumerate(grid.sizes):
        if isinstance(size, int):
            shrinks = large and size > 2 and axis not in mentioned and all(_moves_plainly(b, axis) for b in blocks)
            choices.append((2,) if shrinks else (size,))
        elif axis in mentioned and not _small_constants(uses):
            return None
        else:
            choices.append((2, 3) if axis in several else (1, 2, 3))
    found = []
    for sizes in itertools.product(*choices):
        symbols = grid.model(sizes)
        repeated = any(isinstance(k, Sym) and symbols[k] != size for k, size in zip(grid.sizes, sizes, strict=True))
        if not repeated and 0 < math.prod(sizes) <= _MOST_POINTS:
            found.append(Steps(grid, sizes, symbols))
    if len(found) > _MOST_MODELS:
        found = found[:: len(found) // _MOST_MODELS + 1]
    return found or None


def _moves_plainly(block: Block, axis: int) -> bool:
    """Whether a block moves with each step of an axis, or with none: it then does so on a shorter axis too."""
    if block.ignores(axis):
        return True
    within = [value for value in block.indices or () if axis in axes_in(value)[0]]
    return len(within) == 1 and isinstance(within[0], Array) and _is_index(within[0], axis)


def _is_index(value: Array, axis: int) -> bool:
    return value.origin is not None and value.origin.name == PROGRAM_ID and axis_of(value.origin) == axis


def _small_constants(uses: list[Use]) -> bool:
    """Whether conditions compare indices with 0, 1 or the grid's own sizes only: any small grid then tells."""
    for use in uses:
        for guard in use.guards:
            stack: list[Value] = [guard.condition]
            seen: set[int] = set()
            while stack:
                value = stack.pop()
                if id(value) in seen:
                    continue
                seen.add(id(value))
                if isinstance(value, Const):
                    number = value.value
                    if isinstance(number, int | float) and not isinstance(number, bool) and abs(number) > 1:
                        return False
                elif isinstance(value, Array) and value.origin is not None:
                    if value.origin.name not in (PROGRAM_ID, NUM_PROGRAMS):
                        stack.extend(value.origin.args)
                elif isinstance(value, Sym) and value.operation is not None:
                    stack.extend(value.operation[1:] if value.operation[0] in "+-" else ())
                elif isinstance(value, Choice):
                    stack.extend(value.options)
    return True


def block_keys(block: Block, steps: Steps) -> list[tuple[Point, tuple[object, ...]]] | None:
    """Which block each step visits, in order: equal keys are the same block. None where that is not known."""
    if block.indices is None:
        ignored = block.ignored_axes
        return None if ignored is None else _by_axes(ignored, steps)
    free = _free_symbols(block.indices) - set(steps.symbols)
    tries = [None] if not free else [1009] if _is_linear(block.indices) else [1, 2, 1009]
    found: list[list[tuple[Point, tuple[object, ...]]]] = []
    for number in tries:
        symbols = {**steps.symbols, **({} if number is None else dict.fromkeys(free, number))}
        visits = []
        for point in steps.grid.points(steps.sizes, symbols):
            key = block.at(point)
            if key is None:
                return None
            visits.append((Point(point.indices, point.sizes, steps.symbols), key))
        found.append(visits)  # type: ignore[arg-type]
    partitions = {tuple(_numbered([key for _, key in visits])) for visits in found}
    return found[0] if len(partitions) == 1 else None


def _by_axes(ignored: tuple[int, ...], steps: Steps) -> list[tuple[Point, tuple[object, ...]]]:
    return [
        (point, tuple(index for axis, index in enumerate(point.indices) if axis not in ignored))
        for point in steps.points()
    ]


def _numbered(keys: list[tuple[object, ...]]) -> Iterator[int]:
    numbers: dict[tuple[object, ...], int] = {}
    for key in keys:
        yield numbers.setdefault(key, len(numbers))


def _free_symbols(values: tuple[Value, ...]) -> set[Sym]:
    return symbols_in(list(values))


def _is_linear(values: tuple[Value, ...]) -> bool:
    """Whether indices come from sums and products only: a large number for each name then keeps blocks apart."""
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, Sym) and value.operation is not None:
            if value.operation[0] not in ("+", "-", "*"):
                return False
            stack.extend(value.operation[1:])
        elif isinstance(value, Array) and value.origin is not None and value.origin.name != PROGRAM_ID:
            if value.origin.name.rpartition(".")[2] not in ("add", "sub", "subtract", "multiply", "mul"):
                return False
            stack.extend(value.origin.args)
    return True


def visits_of(buffer: Buffer, steps: Steps) -> list[Visit] | None:
    """The steps with the buffer's memory and result at each, as if blocks kept what they hold when they are left."""
    keys = [block_keys(block, steps) for _, block in buffer.results]
    if any(key is None for key in keys):
        return None
    combined = zip(*(key for key in keys if key is not None), strict=True) if keys else ()
    if not keys:
        return [Visit(point, None, None) for point in steps.points()]
    visits = []
    for here in combined:
        block = tuple(key for _, key in here)
        visits.append(Visit(here[0][0], block if buffer.is_output else None, block))
    return visits


def tested_axes(guards: tuple[Guard, ...]) -> tuple[int, ...]:
    """The grid axes that conditions ask for."""
    return tuple(sorted({axis for guard in guards for axis in axes_in(guard.condition)[0]}))


def axes_text(axes: tuple[int, ...]) -> str:
    """ "axis 2", "axes 1 and 2"."""
    if len(axes) == 1:
        return f"axis {axes[0]}"
    return f"axes {', '.join(map(str, axes[:-1]))} and {axes[-1]}"


def step_text(point: Point) -> str:
    """ "grid step (0, 1)"."""
    return f"grid step {point.indices}"


def program_ids(guard: Guard) -> list[Op]:
    """The `program_id` and `num_programs` operations behind a condition."""
    found: list[Op] = []
    stack: list[Value] = [guard.condition]
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if id(value) in seen or not isinstance(value, Array) or value.origin is None:
            continue
        seen.add(id(value))
        if value.origin.name in (PROGRAM_ID, NUM_PROGRAMS) and axis_of(value.origin) is not None:
            found.append(value.origin)
        else:
            stack.extend(value.origin.args)
    return found


# -- what goes wrong -----------------------------------------------------------------------------------------------

FaultKind = Literal["unset", "lost", "unwritten", "late"]


@frozen(eq=False)
class Visit:
    """One step: the memory that the buffer is in there, and the block of the results that are worked on."""

    point: Point
    memory: object
    block: object


@frozen(eq=False)
class Fault:
    """What goes wrong at one step with one use. `sure`: whether that use surely happens.

    "unset": the buffer is read or updated, and nothing has set it; "lost": it is set anew while what was added to it
    has gone nowhere; "late": it was read for the last time before the last update; "unwritten": no step writes it.
    """

    kind: FaultKind
    use: Use
    point: Point
    sure: bool = True


@define
class _Memory:
    is_set: bool = False
    is_written: bool = False
    updated: object = None  # the block for which it was updated since it was set or read for good
    pending: bool = False  # ... and not written to a result since
    flushed: tuple[Use, object] | None = None  # the last read that went into a result, and its block
    dropped: tuple[Fault, object] | None = None  # an update was thrown away: a fault if the block is written without it


@define
class Simulation:
    """Runs the uses of one buffer in order.

    `flushing`: the outputs of which a later write replaces an earlier one; None where the buffer is an output itself.
    """

    uses: list[Use]
    steps: Steps
    flushing: frozenset[tuple[str, int]] | None
    found: dict[tuple[FaultKind, bool], Fault] = field(factory=dict)

    def run(self, visits: list[Visit]) -> list[Fault]:
        """The first fault of each kind."""
        memories: dict[object, _Memory] = {}
        first: dict[object, Point] = {}
        for visit in visits:
            memory = memories.setdefault(visit.memory, _Memory())
            first.setdefault(visit.memory, visit.point)
            for use in self.uses:
                happens = self.steps.runs(use, visit.point)
                if happens is not False:
                    self._use(memory, use, visit, surely=happens is True)
        writes = [use for use in self.uses if use.kind != "read"]
        for key, memory in memories.items():
            self._check_late(memory, first[key])
            if not memory.is_written and writes:
                self._report(Fault("unwritten", writes[0], first[key]))
        return list(self.found.values())

    def _report(self, fault: Fault) -> None:
        self.found.setdefault((fault.kind, fault.sure), fault)

    def _use(self, memory: _Memory, use: Use, visit: Visit, *, surely: bool) -> None:
        if use.kind in ("read", "update") and not memory.is_set:
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
                if self.flushing is None:
                    self._report(lost)
                memory.dropped = (lost, visit.block)
            else:
                self._check_late(memory, visit.point)
        memory.is_set, memory.updated, memory.pending = True, None, False

    def _read(self, memory: _Memory, use: Use, visit: Visit, *, surely: bool) -> None:
        flushes = self.flushing is not None and bool(use.into) and use.into <= self.flushing
        if flushes and surely:
            if memory.dropped is not None and memory.dropped[1] == visit.block:
                self._report(memory.dropped[0])
            memory.flushed = (use, visit.block)
        else:
            memory.updated = memory.dropped = None
        memory.pending = False

    def _check_late(self, memory: _Memory, point: Point) -> None:
        """At the end, or where the buffer is set for the next block."""
        if memory.pending and memory.flushed is not None and memory.flushed[1] == memory.updated:
            self._report(Fault("late", memory.flushed[0], point))
