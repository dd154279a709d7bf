"""A kernel's events in order of execution, its loops gone round a few times: what one turn leaves, the next meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.trace import LOOP_INDEX, Access, Op, is_full_index
from pallas_lint.kernels.model.values import Array, Call, Const, Ref, Seq, Sym, Value
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pallas_lint.kernels.model.trace import Guard, KernelTrace

_TURNS = 4  # as many as a ring of three slots needs to come back to the first
_FEW = 2
_MOST = 4096  # events, all turns together


@frozen(eq=False)
class Moment:
    """One event as it happens. `turns`: which turn it is of each loop around it, outermost first."""

    at: int  # where it stands in the trace
    event: Access | Op
    turns: tuple[tuple[Guard, int], ...] = ()

    @property
    def conditions(self) -> tuple[Guard, ...]:
        return tuple(guard for guard in self.event.guards if guard.kind not in ("loop", "checkify"))


def moments(trace: KernelTrace) -> Iterator[Moment]:
    """All operations and accesses of a kernel, in order."""
    events = [(at, event) for at, event in enumerate(trace.events) if isinstance(event, Op | Access)]
    depth = max((sum(not loop.exact for loop in _loops(event)) for _, event in events), default=0)
    turns = _TURNS if len(events) * _TURNS**depth <= _MOST else _FEW if len(events) * _FEW**depth <= _MOST else 1
    return _played(events, (), turns)


def _loops(event: Access | Op) -> tuple[Guard, ...]:
    return tuple(guard for guard in event.guards if guard.kind == "loop")


def _played(
    events: Sequence[tuple[int, Access | Op]], turns: tuple[tuple[Guard, int], ...], most: int
) -> Iterator[Moment]:
    depth, at = len(turns), 0
    while at < len(events):
        loops = _loops(events[at][1])
        if len(loops) == depth:
            yield Moment(*events[at], turns)
            at += 1
            continue
        end = at
        while end < len(events) and _loops(events[end][1])[depth : depth + 1] == (loops[depth],):
            end += 1
        if loops[depth].exact:
            yield from _played(events[at:end], (*turns, (loops[depth], 0)), most)
        else:
            told = _told(events[at:end], depth)
            for turn in range(max(most, len(told))):
                yield from _played(told[turn % len(told)], (*turns, (loops[depth], turn)), most)
        at = end


def _told(events: Sequence[tuple[int, Access | Op]], depth: int) -> list[Sequence[tuple[int, Access | Op]]]:
    """The turns of a loop that are in the trace: of one with a carry it has two, which go through the same places.

    Turns of a loop within it are not its own: those are of one run of the inner loop.
    """
    half, odd = divmod(len(events), 2)
    first, second = events[:half], events[half:]
    alike = not odd and all(a.site.key == b.site.key for (_, a), (_, b) in zip(first, second, strict=True))
    within = [{loop for _, event in part for loop in _loops(event)[depth + 1 :]} for part in (first, second)]
    return [first, second] if alike and not within[0] & within[1] else [events]


# -- slots ---------------------------------------------------------------------------------------------------------

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "sub": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "mul": lambda a, b: a * b,
    "rem": lambda a, b: a % b,  # of what loops count, which is not negative
    "remainder": lambda a, b: a % b,
    "mod": lambda a, b: a % b,
}


def part_of(ref: Ref, index: Value, moment: Moment) -> object:
    """The part of a buffer that `ref[index]` names at a moment: equal ones overlap; "" for all of it, None: not known.

    A traced index is only equal to itself in the same turn of the loops in which it is made, unless it counts turns.
    """
    if not ref.view:
        return "" if is_full_index(index) else _slot(index, moment)
    if ref.parent is None or ref.parent.view or ref.indexer is None:
        return None
    return "" if is_full_index(ref.indexer) else _slot(ref.indexer, moment)


def overlap(one: object, other: object) -> bool:
    """Whether two parts of one buffer surely overlap."""
    return one is not None and other is not None and (one in ("", other) or other == "")


def _slot(index: Value, moment: Moment) -> object:
    parts = [_number(part, moment) for part in (index.items if isinstance(index, Seq) else (index,))]
    return None if None in parts else tuple(parts)


def _number(index: Value, moment: Moment) -> object:
    if isinstance(index, Const):
        return None if index.value is ... else index
    if isinstance(index, Sym):  # one of the kernel may be what a Python loop counts
        owners = index.owner if isinstance(index.owner, frozenset) else (index.owner,)
        return index if all(isinstance(owner, Call) and not owner.in_kernel for owner in owners) else None
    if not isinstance(index, Array):
        return None
    number = _counted(index, moment, 8)
    if number is not None:
        return Const(number)
    op = index.origin
    loops = None if op is None or op.name == LOOP_INDEX else _loops(op)
    return ById(index), tuple(turn for turn in moment.turns if loops is None or turn[0] in loops)


def _counted(value: Value, moment: Moment, depth: int) -> int | None:
    """The number that a traced scalar is, where it is computed from turns of loops alone."""
    if isinstance(value, Const):
        return integer(value)
    op = value.origin if isinstance(value, Array) and value.shape == () else None
    if op is None or not depth:
        return None
    if op.name == LOOP_INDEX:
        lower = integer(op.args[0])
        turn = next((turn for guard, turn in reversed(moment.turns) if _is_loop_of(guard, op)), None)
        return None if lower is None or turn is None else lower + turn
    function = _ARITHMETIC.get(op.short)
    if function is None or len(op.args) != 2:
        return None
    left, right = (_counted(operand, moment, depth - 1) for operand in op.args)
    if left is None or right is None or (right == 0 and op.short in ("rem", "remainder", "mod")):
        return None
    return function(left, right)


def _is_loop_of(guard: Guard, index: Op) -> bool:
    """Whether the index is that of the loop: `@pl.loop(0, n)` is a call within the decorator."""
    outer, inner = guard.site.span, index.site.span
    return outer.path == inner.path and outer.start <= inner.start and inner.end <= outer.end
