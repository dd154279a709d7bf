"""The runs that verdicts need, and their descriptions."""

from __future__ import annotations

from collections.abc import Iterator

from .events import Copy, EventIndex, EventTraces, Part, Semaphore, semaphores_of
from .system import HeldCopy, RunEnd, Scheduler


class Runs:
    """A cache of runs of some lines: each is made once."""

    def __init__(self, lines: EventTraces) -> None:
        self.lines = lines
        self.system = Scheduler(lines)
        self.whole = self.system.whole
        self.stuck = [at for at, line in enumerate(lines.lines) if self.whole.progress[at] < len(line)]
        self._made: dict[HeldCopy | EventIndex, RunEnd] = {}
        self._holds: dict[tuple[EventIndex, Part, bool], HeldCopy] = {}

    def held(self, copy: EventIndex, part: Part, *, sure: bool) -> RunEnd:
        """The end of a run in which a part of a copy does not complete."""
        held = self.hold(copy, part, sure=sure)
        if held not in self._made:
            self._made[held] = self.system.run(held=held)
        return self._made[held]

    def hold(self, copy: EventIndex, part: Part, *, sure: bool) -> HeldCopy:
        """The copy with the part that is held back; with a single semaphore, reading and writing end together."""
        key = (copy, part, sure)
        if key not in self._holds:
            event = self.lines.event(copy)
            assert isinstance(event, Copy)
            others = tuple(self._behind(copy, event)) if event.ordered == "device" else ()
            self._holds[key] = HeldCopy(copy, part if event.sent is not None else "read", sure, others)
        return self._holds[key]

    def _behind(self, copy: EventIndex, event: Copy) -> Iterator[EventIndex]:
        """The first work of the same unit in each other line that is sure to begin later.

        The signal that a line's work is done does not wait for the work of other lines.
        """
        lines = enumerate(self.lines.lines) if event.reads or event.writes else ()
        for line, events in lines:
            for index, other in enumerate(events if line != copy[0] else ()):
                works = isinstance(other, Copy) and other.route == event.route and (other.reads or other.writes)
                if works and self.before(copy, (line, index)):
                    yield line, index
                    break

    def stopped(self, moment: EventIndex) -> RunEnd:
        """The end of a run in which a line stops before one of its events."""
        if moment not in self._made:
            self._made[moment] = self.system.run(stop=moment)
        return self._made[moment]

    def ends_without(self, copy: EventIndex, part: Part, semaphore: Semaphore, *, sure: bool) -> bool:
        """Whether all who can wait for a part of a copy leave the kernel without it."""
        progress = self.held(copy, part, sure=sure).progress
        waiting = range(len(progress)) if semaphore.kind in ("arrivals", "work") else [semaphore.home]
        return all(progress[line] == len(self.lines.lines[line]) for line in waiting)

    def before(self, one: EventIndex, other: EventIndex) -> bool:
        """Whether an event comes before another in every run."""
        return one < other if one[0] == other[0] else not self.stopped(one).has(other)

    def copy(self, moment: EventIndex) -> str:
        """ "the copy that device 1 starts in line 12, at step (0, 1)"."""
        copy = self.lines.event(moment)
        assert isinstance(copy, Copy)
        where = f" in line {copy.place['line']}" if copy.place is not None else ""
        return f"the {copy.what} that {self.name(moment[0])} starts{where}{copy.at_step}"

    def about(self, semaphores: set[Semaphore]) -> set[EventIndex]:
        """The events that touch these semaphores."""
        return {moment for moment, event in self.lines if semaphores_of(event) & semaphores}

    def name(self, line: int) -> str:
        return self.lines.names[line]

    def names(self, lines: list[int]) -> str:
        """ "devices 1, 2 and 3"; "7 other devices" where they are many."""
        names = [self.name(line) for line in lines]
        if len(names) > 4 and all(name.startswith("device ") for name in names):
            return f"{len(names)} other devices"
        if len(names) > 1 and all(name.startswith("device ") for name in names):
            names = [name.removeprefix("device ") for name in names]
            return f"devices {', '.join(names[:-1])} and {names[-1]}"
        return ", ".join(names)


def counted(semaphore: Semaphore, amount: int) -> str:
    return f"{amount} bytes" if semaphore.kind == "dma" else str(amount)
