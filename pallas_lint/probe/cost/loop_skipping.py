"""Skipping of loop iterations: those that are known to be like the last one are counted, not run.

A loop is in a steady state when two stretches of it, of as many turns each, took the same way, waited equally long,
left copies equally far from their end, and changed every register and every word of scalar memory by the same amount.
Would the next stretch do so too? It is run once more with numbers that know how they grow from stretch to stretch:
`Growing`. Each decision, each size and each operation on them bounds for how many stretches it stays the same. So
many are skipped, and no more: the result is the one of running them all, to the last tick.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .state import State
from .values import UndeterminedSchedule, UnknownNumber

if TYPE_CHECKING:
    from .machine import Machine

_SHORT, _LONG = range(1, 9), range(9, 300)  # turns of a stretch
_REPEATED = 3  # stretches that took the same way before they are looked at
_MAX_SEGMENTS = 4_000  # segments of a stretch
_UNLIMITED = 1 << 62


class Unsteady(Exception):
    """A stretch for which no bound is known on how often it repeats."""


class Bound:
    """The number of stretches for which all comparisons so far have the same outcome."""

    def __init__(self) -> None:
        self.stretches = _UNLIMITED

    def at_most(self, stretches: int) -> None:
        self.stretches = min(self.stretches, stretches)
        if self.stretches < 1:
            raise Unsteady


class Growing:
    """A number that grows by `by` with each stretch, now `now`."""

    __slots__ = ("bound", "by", "now")

    def __init__(self, now: int, by: int, bound: Bound) -> None:
        self.now, self.by, self.bound = now, by, bound

    def _made(self, now: int, by: int) -> Any:
        return Growing(now, by, self.bound) if by else now

    def __add__(self, other: Any) -> Any:
        if isinstance(other, UnknownNumber):
            return other
        if isinstance(other, Growing):
            return self._made(self.now + other.now, self.by + other.by)
        return self._made(self.now + other, self.by)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self._made(-self.now, -self.by)

    def __sub__(self, other: Any) -> Any:
        return other if isinstance(other, UnknownNumber) else self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return other if isinstance(other, UnknownNumber) else -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, UnknownNumber):
            return other
        if isinstance(other, Growing):
            raise Unsteady
        return self._made(self.now * other, self.by * other)

    __rmul__ = __mul__

    def __lshift__(self, other: Any) -> Any:
        return other if isinstance(other, UnknownNumber) else self * (1 << _plain(other))

    def __rshift__(self, other: Any) -> Any:
        return other if isinstance(other, UnknownNumber) else self // (1 << _plain(other))

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, UnknownNumber):
            return other
        if self.by % _plain(other):
            self._keeps_within(other)
            return self.now // other
        return self._made(self.now // other, self.by // other)

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, UnknownNumber):
            return other
        if self.by % _plain(other):
            return self - self._keeps_within(other)
        return self.now % other

    def _keeps_within(self, size: int) -> int:
        """The quotient is the same for some stretches; returns the multiple of `size` from which on it is so."""
        first = self.now // size * size
        self._stays(first, first + size - 1)
        return first

    def __and__(self, other: Any) -> Any:
        if isinstance(other, UnknownNumber):
            return other
        mask = _plain(other)
        if mask == 0xFFFFFFFF:  # without a sign
            self._stays(0, 0xFFFFFFFF)
            return self
        lowest = mask & -mask
        if mask <= 0 or mask & (mask + lowest):
            raise Unsteady  # bits that do not stand together
        return self // lowest % (mask // lowest + 1) * lowest

    __rand__ = __and__

    def _other(self, *_: Any) -> Any:
        raise Unsteady

    __or__ = __ror__ = __xor__ = __rxor__ = __rlshift__ = __rrshift__ = __rfloordiv__ = __rmod__ = _other
    __bool__ = __int__ = __index__ = __hash__ = _other

    def word(self) -> Any:
        """The number is one of 32 bits for some stretches."""
        self._stays(-0x80000000, 0x7FFFFFFF)
        return self

    def _stays(self, low: int, high: int) -> None:
        if not low <= self.now <= high:
            raise Unsteady
        room = high - self.now if self.by > 0 else self.now - low
        # In the stretch number k (0 is the one that is run now) it is now + k * by.
        self.bound.at_most(room // abs(self.by) + 1)

    def _sign(self, other: Any) -> int:
        """The sign of the difference to another number; bounds the turns for which it stays the same."""
        gap = self - other
        if not isinstance(gap, Growing):
            return int(gap > 0) - int(gap < 0)
        sign = (gap.now > 0) - (gap.now < 0)
        if sign == 0:
            self.bound.at_most(1)
        elif sign * gap.by < 0:
            # It is 0 or beyond in the stretch number |now| / |by|, rounded up.
            self.bound.at_most(-(-abs(gap.now) // abs(gap.by)))
        return sign

    def __lt__(self, other: Any) -> Any:
        return other if isinstance(other, UnknownNumber) else self._sign(other) < 0

    def __le__(self, other: Any) -> Any:
        return other if isinstance(other, UnknownNumber) else self._sign(other) <= 0

    def __gt__(self, other: Any) -> Any:
        return other if isinstance(other, UnknownNumber) else self._sign(other) > 0

    def __ge__(self, other: Any) -> Any:
        return other if isinstance(other, UnknownNumber) else self._sign(other) >= 0

    def __eq__(self, other: object) -> Any:
        return other if isinstance(other, UnknownNumber) else self._sign(other) == 0

    def __ne__(self, other: object) -> Any:
        return other if isinstance(other, UnknownNumber) else self._sign(other) != 0


def _plain(value: Any) -> int:
    if (isinstance(value, int) and value > 0) or (value == 0 and isinstance(value, int)):
        return value
    raise Unsteady


@dataclass
class Snapshot:
    """A state at the head of a loop, and what was counted until then."""

    scalars: list[Any]
    predicates: list[Any]
    memory: dict[Any, Any]
    time: int
    copies: Any  # times from now on
    counted: dict[Any, int]


class _Hunt:
    """The search for stretches of one loop that are alike."""

    def __init__(self, periods: range, longest: int, every: int) -> None:
        self.periods = periods  # of how many turns a stretch may be
        self.longest = longest  # segments that may be run to find out how often it comes out the same
        self.every = every  # turns between two looks
        self.period = 0
        self.left = 0  # turns until the next snapshot
        self.taken: list[Snapshot] = []
        self.resting = 0  # turns in which nothing is done, after it was in vain
        self.in_vain = 0

    def begin(self) -> None:
        self.period, self.left, self.taken = 0, 0, []

    def ended(self, skipped: bool) -> None:
        self.begin()
        self.in_vain = 0 if skipped else self.in_vain + 1
        self.resting = 0 if skipped else 1 << min(self.in_vain, 12)


class _Loop:
    """The state of the loop at one head. Iterations that were skipped count as part of the next one that is run.

    So a loop over two axes of the grid, of which most turns along the inner one are skipped, is a loop of few turns,
    and as alike from row to row as without.
    """

    def __init__(self) -> None:
        self.ways: deque[int] = deque(maxlen=_REPEATED * _LONG.stop)
        self.turns = 0
        self.hunts = (_Hunt(_LONG, 50 * _MAX_SEGMENTS, 16), _Hunt(_SHORT, _MAX_SEGMENTS, 1))


class Watch:
    """Looks at a machine whenever it goes back to the head of a loop."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.loops: dict[int, _Loop] = {}
        self.before: dict[int, tuple[int, ...]] = {}

    def back(self, head: int) -> int:
        """At the head of a loop again: skip what can be. Returns the segments that it took to find out."""
        loop = self.loops.setdefault(head, _Loop())
        state = self.machine.state
        runs = (state.time, *self.machine.tally.runs[head:])
        last = self.before.get(head)
        self.before[head] = runs
        if last is None:
            return 0
        loop.turns += 1
        loop.ways.append(hash((tuple(now - then for now, then in zip(runs, last, strict=False)), self._copies())))
        steps = 0
        for hunt in loop.hunts:
            taken, skipped = self._hunt(head, loop, hunt)
            steps += taken
            if skipped:
                self._others_begin_anew(loop, hunt)
                break
        return steps

    def _hunt(self, head: int, loop: _Loop, hunt: _Hunt) -> tuple[int, bool]:
        if hunt.resting:
            hunt.resting -= 1
            return 0, False
        if not hunt.period:
            if loop.turns % hunt.every == 0:
                hunt.period = _period(loop.ways, hunt.periods)
            if not hunt.period:
                return 0, False
        if hunt.left:
            hunt.left -= 1
            if hunt.left:
                return 0, False
        hunt.taken.append(self._snapshot())
        hunt.left = hunt.period
        if len(hunt.taken) < 3:
            return 0, False
        steps, skipped = self._skip(head, hunt)
        hunt.ended(skipped)
        return steps, skipped

    def _others_begin_anew(self, loop: _Loop, hunt: _Hunt) -> None:
        """After a skip: what is inside or around saw other turns; the same loop's longer stretches go on."""
        for head, other in self.loops.items():
            if other is not loop:
                self.before.pop(head, None)
                for each in other.hunts:
                    each.begin()
        if hunt.periods is _LONG:
            loop.hunts[1].begin()

    def _snapshot(self) -> Snapshot:
        state = self.machine.state
        return Snapshot(
            list(state.scalars), list(state.predicates), dict(state.memory), state.time,
            self._copies(), self.machine.tally.numbers(),
        )  # fmt: skip

    def _copies(self) -> tuple[Any, ...]:
        """The copies under way: for how long HBM moves their bytes, and when each will be done."""
        state = self.machine.state
        now = state.time
        waiting = sorted(
            (flag, tuple((max(done - now, 0), count) for done, count in queue))
            for flag, queue in state.pending.items() if queue
        )  # fmt: skip
        return max(state.free - now, 0), tuple(waiting), tuple(sorted(state.overdrawn.items()))

    def _skip(self, head: int, hunt: _Hunt) -> tuple[int, bool]:
        """Skip stretches like the last two; the segments that were run to find out, and whether any were."""
        first, second, third = hunt.taken
        grown = {name: count - second.counted.get(name, 0) for name, count in third.counted.items()}
        if second.copies != third.copies or grown != {
            name: second.counted.get(name, 0) - first.counted.get(name, 0) for name in third.counted
        }:
            return 0, False
        bound = Bound()
        try:
            state = self._growing(first, second, third, bound)
            steps = self._try(head, state, hunt.longest, grown)
            _goes_on(state, second, third)
        except (Unsteady, UndeterminedSchedule):
            return hunt.longest, False
        times = bound.stretches
        if times >= _UNLIMITED:
            raise UndeterminedSchedule("a loop without an end")
        self._advance(second, third, grown, times)
        return steps, True

    def _growing(self, first: Snapshot, second: Snapshot, third: Snapshot, bound: Bound) -> Any:
        def number(one: Any, two: Any, three: Any) -> Any:
            if isinstance(three, (UnknownNumber, bool)) or isinstance(two, bool):
                if isinstance(three, UnknownNumber) or (two is three and one is two):
                    return three
                raise Unsteady
            if isinstance(two, UnknownNumber) or isinstance(one, UnknownNumber) or two - one != three - two:
                raise Unsteady
            return Growing(three, three - two, bound) if three != two else three

        if not first.memory.keys() == second.memory.keys() == third.memory.keys():
            raise Unsteady
        scalars = list(map(number, first.scalars, second.scalars, third.scalars))
        predicates = list(map(number, first.predicates, second.predicates, third.predicates))
        memory = {at: number(first.memory[at], second.memory[at], value) for at, value in third.memory.items()}
        return State(scalars, predicates, memory)

    def _try(self, head: int, state: Any, longest: int, grown: dict[Any, int]) -> int:
        """Run one stretch with growing numbers, which give the bound; it has to take the path of the last one."""
        begun: dict[int, int] = {}

        def begin(at: int, granules: Any, flag: Any, now: int) -> None:
            if isinstance(granules, Growing) or isinstance(flag, Growing):
                raise Unsteady

        def wait(at: int, flag: Any, granules: Any, now: int) -> int:
            begin(at, granules, flag, now)
            return now

        def add(at: int, flag: Any, count: Any, now: int) -> None:
            begin(at, count, flag, now)

        def copy(at: int, granules: Any, flag: Any, source_flag: Any, overrides: Any, now: int) -> None:
            begin(at, granules, flag, now)
            begin(at, source_flag, overrides, now)

        def signal(now: int) -> None:
            raise Unsteady

        functions = self.machine.bound(state, begin, wait, add, copy, signal)
        wanted = {name[1]: count for name, count in grown.items() if name[0] == "runs" and count}
        total, steps, at = sum(wanted.values()), 0, head
        while steps < total:
            begun[at] = begun.get(at, 0) + 1
            if steps >= longest or begun[at] > wanted.get(at, 0):
                raise Unsteady
            _, at = functions[at](0)
            steps += 1
        if at != head or begun != wanted:
            raise Unsteady
        return steps

    def _advance(self, second: Snapshot, third: Snapshot, grown: dict[Any, int], times: int) -> None:
        """Set the machine to where it would be after so many stretches."""
        state = self.machine.state
        passed = (third.time - second.time) * times
        for lists, two, three in (
            (state.scalars, second.scalars, third.scalars),
            (state.predicates, second.predicates, third.predicates),
        ):
            for at, value in enumerate(three):
                lists[at] = _after(two[at], value, times)
        for at, value in third.memory.items():
            state.memory[at] = _after(second.memory[at], value, times)
        state.time += passed
        state.free += passed
        for queue in state.pending.values():
            queue[:] = [(done + passed, count) for done, count in queue]
        self.machine.tally.add(grown, times)
        self.machine.notes_transfers = False


def _goes_on(state: Any, second: Snapshot, third: Snapshot) -> None:
    """The stretch that was tried has to leave what it began with, one stretch further: so the next one does too."""
    for now, two, three in (
        (state.scalars, second.scalars, third.scalars),
        (state.predicates, second.predicates, third.predicates),
    ):
        for at, value in enumerate(now):
            _is_next(value, two[at], three[at])
    if state.memory.keys() != third.memory.keys():
        raise Unsteady
    for at, value in state.memory.items():
        _is_next(value, second.memory[at], third.memory[at])


def _is_next(value: Any, two: Any, three: Any) -> None:
    if isinstance(three, UnknownNumber) or isinstance(value, UnknownNumber):
        good = isinstance(three, UnknownNumber) and isinstance(value, UnknownNumber)
    elif isinstance(value, Growing):
        good = not isinstance(three, bool) and value.by == three - two and value.now == three + value.by
    else:
        good = value is three if isinstance(three, bool) else value == three == two
    if not good:
        raise Unsteady


def _after(two: Any, three: Any, times: int) -> Any:
    return three if isinstance(three, (UnknownNumber, bool)) else three + (three - two) * times


def _period(ways: deque[int], periods: range) -> int:
    """After how many turns the way repeats; 0 where it did not do so often enough."""
    seen = list(ways)
    for period in periods:
        if len(seen) < _REPEATED * period:
            break
        if seen[-1] == seen[-1 - period] == seen[-1 - 2 * period]:
            last = seen[-_REPEATED * period :]
            if last[period:] == last[:-period]:
                return period
    return 0
