"""Runs of the devices' lines: as far as they go, or with a copy held back, or with a device stopped."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from .events import Access, Astray, Event, Lines, Moment, Semaphore, Signal, Wait

Part = Literal["read", "write"]
_WAIT, _SIGNAL, _COPY = 0, 1, 2


@dataclass(frozen=True)
class Held:
    """A copy of which a part does not complete. `sure`: later ones to the same device do not overtake it either, and
    nothing of it is counted yet; else all but its last byte is.
    """

    copy: Moment
    part: Part
    sure: bool


@dataclass
class Reached:
    """Where a run ended. `progress`: for each line, the number of its events that happened, accesses after the last one
    included up to what blocks it.
    """

    progress: list[int]
    amounts: dict[Semaphore, int]  # those that are not zero
    order: list[Moment]  # of the events that are no accesses; empty where it is not asked for

    def has(self, moment: Moment) -> bool:
        """Whether an event happened."""
        return self.progress[moment[0]] > moment[1]


class System:
    """Lines, ready to be run many times: only what touches semaphores is looked at."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.steps = 0  # made in all runs
        self._semaphores: list[Semaphore] = []
        self._number: dict[Semaphore, int] = {}
        self._where: list[list[int]] = []  # for each line, which of its events touch semaphores
        self._moves = [self._compiled(line) for line in lines.lines]

    def _compiled(self, line: list[Event]) -> list[tuple[int, ...]]:
        """(kind, semaphore, amount, semaphore of the sender or whether it takes, whom it goes to)."""
        where: list[int] = []
        moves: list[tuple[int, ...]] = []
        for at, event in enumerate(line):
            if isinstance(event, Access | Astray):
                continue
            where.append(at)
            if isinstance(event, Wait):
                moves.append((_WAIT, self._of(event.semaphore), event.amount, int(event.takes), 0))
            elif isinstance(event, Signal):
                moves.append((_SIGNAL, self._of(event.semaphore), event.amount, 0, 0))
            else:
                sent = -1 if event.sent is None else self._of(event.sent)
                moves.append((_COPY, self._of(event.received), event.size, sent, event.to))
        self._where.append(where)
        return moves

    def _of(self, semaphore: Semaphore) -> int:
        number = self._number.setdefault(semaphore, len(self._semaphores))
        if number == len(self._semaphores):
            self._semaphores.append(semaphore)
        return number

    def run(self, *, held: Held | None = None, stop: Moment | None = None, ordered: bool = False) -> Reached:
        """Everything that can happen while a copy is held back, and a line does not do the event `stop`.

        `ordered`: tell the order of the run.
        """
        progress = [0] * len(self._moves)
        ends = [len(moves) for moves in self._moves]
        if stop is not None:
            ends[stop[0]] = bisect_right(self._where[stop[0]], stop[1] - 1)
        holder, hold, route = -1, -1, -1
        if held is not None:
            holder, hold = held.copy[0], bisect_right(self._where[held.copy[0]], held.copy[1] - 1)
            route = self._moves[holder][hold][4]
        amounts = [0] * len(self._semaphores)
        homes = [semaphore.home for semaphore in self._semaphores]
        asleep = [-1] * len(self._moves)  # the semaphore that a line waits for
        order: list[Moment] = []
        ready = list(range(len(self._moves)))
        while ready:
            line = ready.pop()
            asleep[line] = -1
            moves, at, end = self._moves[line], progress[line], ends[line]
            begun = at
            while at < end:
                kind, semaphore, amount, other, to = moves[at]
                given: tuple[tuple[int, int], ...] = ()
                if kind == _WAIT:
                    if amounts[semaphore] < amount:
                        asleep[line] = semaphore
                        break
                    if other:
                        amounts[semaphore] -= amount
                elif kind == _SIGNAL:
                    given = ((semaphore, amount),)
                elif line == holder and at >= hold and held is not None and (at == hold or (held.sure and to == route)):
                    given = self._partly(held, semaphore, amount, other)
                else:
                    given = ((semaphore, amount), (other, amount)) if other >= 0 else ((semaphore, amount),)
                for number, more in given:
                    amounts[number] += more
                    owner = homes[number]
                    if asleep[owner] == number:
                        asleep[owner] = -1
                        ready.append(owner)
                if ordered:
                    order.append((line, self._where[line][at]))
                at += 1
            self.steps += at - begun
            progress[line] = at
        left = {self._semaphores[number]: amount for number, amount in enumerate(amounts) if amount}
        return Reached([self._events(line, at, stop) for line, at in enumerate(progress)], left, order)

    def _partly(self, held: Held, received: int, amount: int, sent: int) -> tuple[tuple[int, int], ...]:
        """What semaphores get of a copy that is held back."""
        some = 0 if held.sure else amount - 1
        if sent < 0:
            return ((received, some),)
        return ((received, some), (sent, some if held.part == "read" else amount))

    def _events(self, line: int, moves: int, stop: Moment | None) -> int:
        """How many events of a line happened, given how many of those that touch semaphores."""
        where = self._where[line]
        end = where[moves] if moves < len(where) else len(self.lines.lines[line])
        return min(end, stop[1]) if stop is not None and stop[0] == line else end
