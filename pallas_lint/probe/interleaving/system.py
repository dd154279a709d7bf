"""A scheduler that runs the devices' event traces: to their end, with a copy held back, or with a device stopped."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from .events import Event, EventIndex, EventTraces, Fence, InvalidAccess, MemoryAccess, Part, Semaphore, Signal, Wait

_WAIT, _SIGNAL, _COPY = 0, 1, 2
_KEPT_EVERY = 256  # moves of the whole run, from one state that is kept to the next
MAX_STEPS = 30_000_000  # of all runs of one system: about half a minute


class TooLarge(Exception):
    """The check would take too long; the message is a phrase with the reason."""


@dataclass(frozen=True)
class HeldCopy:
    """A copy of which a part does not complete. `sure`: later ones to the same device do not overtake it either, and
    nothing of it is counted yet; else all but its last byte is.
    """

    copy: EventIndex
    part: Part
    sure: bool
    others: tuple[EventIndex, ...] = ()  # from which on works of the same route are late in other lines, too


@dataclass
class RunEnd:
    """Where a run ended. `progress`: for each line, how many of its events happened, accesses up to what blocks it
    included.
    """

    progress: list[int]
    amounts: dict[Semaphore, int]  # those that are not zero; of single works in the whole run only
    order: list[EventIndex]  # of the events that are no accesses; empty where it is not requested

    def has(self, moment: EventIndex) -> bool:
        """Whether an event happened."""
        return self.progress[moment[0]] > moment[1]


@dataclass
class _State:
    """How many moves each line has made, and what is in the semaphores."""

    made: list[int]
    amounts: list[int]

    def copy(self) -> _State:
        return _State(self.made[:], self.amounts[:])


class Scheduler:
    """Lines, ready to be run many times: only their moves, the events that touch semaphores, are looked at.

    A run that differs from the whole one begins where it parts from it, from a state that was kept shortly before.
    """

    def __init__(self, lines: EventTraces) -> None:
        self.lines = lines
        self.steps = 0  # made in all runs
        self._semaphores: list[Semaphore] = []
        self._number: dict[Semaphore, int] = {}
        self._routes: dict[str | int, int] = {}
        self._ordered: set[int] = set()  # routes on which nothing overtakes
        self._where: list[list[int]] = []  # for each line, which of its events are moves
        self._moves = [self._compiled(line) for line in lines.lines]
        self._counting = [number for number, each in enumerate(self._semaphores) if each.kind != "work"]
        self._ends = [len(moves) for moves in self._moves]
        self._order: list[EventIndex] = []  # of the whole run: line, move
        self._kept: list[_State] = []
        state = _State([0] * len(self._moves), [0] * len(self._semaphores))
        self._go_on(state, self._ends, None, self._order, keep=True)
        self._when = [[len(self._order)] * end for end in self._ends]  # for each move, when it happens in the whole run
        for at, (line, move) in enumerate(self._order):
            self._when[line][move] = at
        self.whole = self._reached(state, None, self._order)
        self.whole.amounts = self._amounts(state, range(len(self._semaphores)))

    def _compiled(self, line: list[Event]) -> list[tuple[int, ...]]:
        """(kind, semaphore, amount, semaphore of the sender or whether it takes, route)."""
        where: list[int] = []
        moves: list[tuple[int, ...]] = []
        for at, event in enumerate(line):
            if isinstance(event, MemoryAccess | Fence | InvalidAccess):
                continue
            where.append(at)
            if isinstance(event, Wait):
                moves.append((_WAIT, self._of(event.semaphore), event.amount, int(event.takes), 0))
            elif isinstance(event, Signal):
                moves.append((_SIGNAL, self._of(event.semaphore), event.amount, 0, 0))
            else:
                sent = -1 if event.sent is None else self._of(event.sent)
                route = self._routes.setdefault(event.route, len(self._routes))
                if event.ordered:
                    self._ordered.add(route)
                moves.append((_COPY, self._of(event.received), event.size, sent, route))
        self._where.append(where)
        return moves

    def _of(self, semaphore: Semaphore) -> int:
        number = self._number.setdefault(semaphore, len(self._semaphores))
        if number == len(self._semaphores):
            self._semaphores.append(semaphore)
        return number

    def run(self, *, held: HeldCopy | None = None, stop: EventIndex | None = None, ordered: bool = False) -> RunEnd:
        """Everything that can happen while a copy is held back, and a line does not do the event `stop`.

        `ordered`: return the order, too. Raises TooLarge.
        """
        self.spend(0)
        ends, parting = self._ends[:], len(self._order)
        if held is not None:
            parting = self._when[held.copy[0]][self._move(held.copy)]
        if stop is not None:
            line, move = stop[0], self._move(stop)
            ends[line] = move
            if move < len(self._when[line]):
                parting = min(parting, self._when[line][move])
        order = self._order[:parting] if ordered else None
        state = self._at(parting)
        self._go_on(state, ends, held, order)
        return self._reached(state, stop, order or [])

    def spend(self, steps: int) -> None:
        """Count steps. Raises TooLarge."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise TooLarge(f"judging them takes more than {MAX_STEPS:,} steps")

    def _move(self, moment: EventIndex) -> int:
        """Which move of its line is the first that is not before an event."""
        return bisect_left(self._where[moment[0]], moment[1])

    def _at(self, time: int) -> _State:
        """The whole run's state before its step `time`."""
        kept = min(time // _KEPT_EVERY, len(self._kept) - 1)
        state = self._kept[kept].copy()
        for line, move in self._order[kept * _KEPT_EVERY : time]:
            kind, semaphore, amount, other, _ = self._moves[line][move]
            if kind != _WAIT:
                state.amounts[semaphore] += amount
                if kind == _COPY and other >= 0:
                    state.amounts[other] += amount
            elif other:
                state.amounts[semaphore] -= amount
            state.made[line] = move + 1
        self.steps += time - kept * _KEPT_EVERY
        return state

    def _go_on(
        self,
        state: _State,
        ends: list[int],
        held: HeldCopy | None,
        order: list[EventIndex] | None,
        *,
        keep: bool = False,
    ) -> None:
        """Make all moves that can be made, up to these ends; the order is returned, and states are kept, on request."""
        amounts, made = state.amounts, state.made
        hold, route, late = (-1, -1), -1, {}
        if held is not None:
            hold = held.copy[0], self._move(held.copy)
            route = self._moves[hold[0]][hold[1]][4]
            if held.sure or route in self._ordered:
                late = {line: self._move((line, index)) for line, index in (held.copy, *held.others)}
        asleep: dict[int, list[int]] = {}  # the lines that wait for a semaphore
        ready = list(range(len(made)))
        while ready:
            line = ready.pop()
            moves, end, at = self._moves[line], ends[line], made[line]
            behind = late.get(line, end)
            self.steps -= at
            while at < end:
                kind, semaphore, amount, other, to = moves[at]
                given: tuple[tuple[int, int], ...] = ()
                if kind == _WAIT:
                    if amounts[semaphore] < amount:
                        asleep.setdefault(semaphore, []).append(line)
                        break
                elif kind == _SIGNAL:
                    given = ((semaphore, amount),)
                elif held is not None and ((line, at) == hold or (at >= behind and to == route)):
                    given = _partly(held, semaphore, amount, other)
                else:
                    given = ((semaphore, amount), (other, amount)) if other >= 0 else ((semaphore, amount),)
                if keep and order is not None and len(order) % _KEPT_EVERY == 0:
                    made[line] = at
                    self._kept.append(state.copy())
                if kind == _WAIT and other:
                    amounts[semaphore] -= amount
                for number, more in given:
                    amounts[number] += more
                    ready += asleep.pop(number, ())
                if order is not None:
                    order.append((line, at))
                at += 1
            made[line] = at
            self.steps += at
        if keep and not self._kept:
            self._kept.append(state.copy())

    def _reached(self, state: _State, stop: EventIndex | None, order: list[EventIndex]) -> RunEnd:
        progress = [self._events(line, made, stop) for line, made in enumerate(state.made)]
        happened = [(line, self._where[line][move]) for line, move in order]
        return RunEnd(progress, self._amounts(state, self._counting), happened)

    def _amounts(self, state: _State, numbers: Iterable[int]) -> dict[Semaphore, int]:
        return {self._semaphores[number]: state.amounts[number] for number in numbers if state.amounts[number]}

    def _events(self, line: int, made: int, stop: EventIndex | None) -> int:
        """How many events of a line happened, given how many of its moves."""
        where = self._where[line]
        end = where[made] if made < len(where) else len(self.lines.lines[line])
        return min(end, stop[1]) if stop is not None and stop[0] == line else end


def _partly(held: HeldCopy, received: int, amount: int, sent: int) -> tuple[tuple[int, int], ...]:
    """What semaphores get of a copy that is held back."""
    some = 0 if held.sure else amount - 1
    if sent < 0:
        return ((received, some),)
    return ((received, some), (sent, some if held.part == "read" else amount))
