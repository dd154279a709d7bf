"""Every interleaving of the devices, one after the other: slow, and with no cleverness that could be wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from pallas_lint.probe.interleaving.events import (
    Copy,
    EventIndex,
    EventTraces,
    MemoryAccess,
    Region,
    Semaphore,
    Signal,
    Wait,
)

Use = tuple[EventIndex, str]  # what a race is of: "read" or "write" of a copy, "access"


class TooMany(Exception):
    """More states than are looked at."""


@dataclass
class Found:
    deadlock: bool = False
    left: set[tuple[tuple[Semaphore, int], ...]] = field(default_factory=set)
    races: set[frozenset[Use]] = field(default_factory=set)
    unfinished: set[Use] = field(default_factory=set)  # copies that may outlive a line that they use
    overruns: set[EventIndex] = field(default_factory=set)  # waits before which a barrier may complete twice
    states: int = 0


def search(lines: EventTraces, *, sure: bool, limit: int = 60_000) -> Found:
    """What some interleaving shows. `sure`: copies between two lines arrive in order, and semaphores count whole ones.

    A state is (events done of each line, semaphores, units read and written of each copy that began).
    """
    return _Search(lines, sure=sure, limit=limit).run()


class _Search:
    def __init__(self, lines: EventTraces, *, sure: bool, limit: int) -> None:
        self.lines, self.sure, self.limit = lines, sure, limit
        self.copies: dict[EventIndex, Copy] = {}
        self.semaphores: dict[Semaphore, int] = {}
        for at, line in enumerate(lines.lines):
            for index, event in enumerate(line):
                if isinstance(event, Copy):
                    self.copies[at, index] = event
                    self._number(event.received)
                    if event.sent is not None:
                        self._number(event.sent)
                elif isinstance(event, Signal | Wait):
                    self._number(event.semaphore)
        self.order = list(self.copies)
        self.found = Found()

    def _number(self, semaphore: Semaphore) -> int:
        return self.semaphores.setdefault(semaphore, len(self.semaphores))

    def run(self) -> Found:
        nothing = ((0,) * len(self.lines.lines), (0,) * len(self.semaphores), ((-1, -1),) * len(self.copies))
        seen, todo = {nothing}, [nothing]
        while todo:
            state = todo.pop()
            self._look(state)
            successors = [*self._events(state), *self._engines(state)]
            if not successors:
                self._end(state)
            for each in successors:
                if each not in seen:
                    seen.add(each)
                    todo.append(each)
            if len(seen) > self.limit:
                raise TooMany
        self.found.states = len(seen)
        return self.found

    # A copy's (read, written) counts units: -1 before it begins. One with a single semaphore reads and writes at once.

    def _under_way(self, phases, number: int) -> list[tuple[Region, bool, str]]:
        moment = self.order[number]
        copy, (read, written) = self.copies[moment], phases[number]
        if read < 0:
            return []
        uses = []
        if (read if copy.sent is not None else written) < copy.size:
            uses += [(region, False, "read") for region in copy.reads]
        if written < copy.size:
            uses += [(region, True, "write") for region in copy.writes]
        return uses

    def _look(self, state) -> None:
        """Note what races in this state, and what outlives its device."""
        progress, amounts, phases = state
        for line, index in enumerate(progress):
            for later, event in enumerate(self.lines.lines[line][index:], index):
                if not isinstance(event, Wait) or event.semaphore.kind != "arrivals":
                    continue
                if amounts[self.semaphores[event.semaphore]] >= event.amount + event.semaphore.phase:
                    self.found.overruns.add((line, later))
        ready = [
            ((line, index), self.lines.lines[line][index])
            for line, index in enumerate(progress)
            if index < len(self.lines.lines[line])
        ]
        own = [(moment, event) for moment, event in ready if isinstance(event, MemoryAccess)]
        for at, (moment, event) in enumerate(own):
            for other, second in own[:at]:
                if (event.writes or second.writes) and event.region.overlaps(second.region):
                    self.found.races.add(frozenset({(moment, "access"), (other, "access")}))
        flying = [
            (number, region, writes, part)
            for number in range(len(self.order))
            for region, writes, part in self._under_way(phases, number)
        ]
        for at, (number, region, writes, part) in enumerate(flying):
            mine: Use = (self.order[number], part)
            for other, second, wrote, its in flying[:at]:
                if self._in_order(number, other):
                    continue
                if other != number and (writes or wrote) and region.overlaps(second):
                    self.found.races.add(frozenset({mine, (self.order[other], its)}))
            for moment, event in own:
                if (writes or event.writes) and region.overlaps(event.region):
                    self.found.races.add(frozenset({mine, (moment, "access")}))
            if progress[region.home] == len(self.lines.lines[region.home]):
                self.found.unfinished.add(mine)

    def _in_order(self, one: int, other: int) -> bool:
        """Whether a unit does one after the other."""
        first, second = self.copies[self.order[one]], self.copies[self.order[other]]
        return bool(first.ordered) and self.order[one][0] == self.order[other][0] and first.route == second.route

    def _events(self, state):
        progress, amounts, phases = state
        for line, index in enumerate(progress):
            if index == len(self.lines.lines[line]):
                continue
            event = self.lines.lines[line][index]
            given, begun = list(amounts), list(phases)
            if isinstance(event, Wait):
                number = self.semaphores[event.semaphore]
                if amounts[number] < event.amount:
                    continue
                given[number] -= event.amount if event.takes else 0
            elif isinstance(event, Signal):
                given[self.semaphores[event.semaphore]] += event.amount
            elif isinstance(event, Copy):
                begun[self.order.index((line, index))] = (0, 0)
            yield (*progress[:line], index + 1, *progress[line + 1 :]), tuple(given), tuple(begun)

    def _engines(self, state):
        progress, amounts, phases = state
        for number, moment in enumerate(self.order):
            copy, (read, written) = self.copies[moment], phases[number]
            if read < 0:
                continue
            if copy.sent is not None and read < copy.size and not self._behind(phases, number, 0):
                step = copy.size if self.sure else 1
                yield (
                    progress,
                    self._given(amounts, copy.sent, step),
                    self._phase(phases, number, (read + step, written)),
                )
            # In one piece, or byte by byte: the first ones are written, and counted, before the last ones are read.
            through = copy.sent is None or read == copy.size or (not self.sure and read > written)
            if through and written < copy.size and not self._behind(phases, number, 1):
                step = copy.size if self.sure else 1
                yield (
                    progress,
                    self._given(amounts, copy.received, step),
                    self._phase(phases, number, (read, written + step)),
                )

    def _behind(self, phases, number: int, part: int) -> bool:
        """Whether an earlier copy of the same route has to be further first."""
        (line, index), copy = self.order[number], self.copies[self.order[number]]
        if not self.sure and not copy.ordered:
            return False
        for other, (its_line, its_index) in enumerate(self.order):
            earlier = self.copies[its_line, its_index]
            if its_line == line and its_index < index and earlier.route == copy.route:
                done = phases[other][part if earlier.sent is not None else 1]
                # One that reads and writes at once stands in both queues.
                whole = phases[other][1] if copy.sent is None else done
                if done < earlier.size or whole < earlier.size:
                    return True
        return False

    def _given(self, amounts, semaphore: Semaphore, amount: int):
        number = self.semaphores[semaphore]
        return (*amounts[:number], amounts[number] + amount, *amounts[number + 1 :])

    def _phase(self, phases, number: int, now: tuple[int, int]):
        return (*phases[:number], now, *phases[number + 1 :])

    def _end(self, state) -> None:
        progress, amounts, _ = state
        if any(index < len(line) for index, line in zip(progress, self.lines.lines, strict=True)):
            self.found.deadlock = True
            return
        left = ((semaphore, amounts[number]) for semaphore, number in self.semaphores.items() if amounts[number])
        self.found.left.add(tuple(sorted(left, key=str)))
