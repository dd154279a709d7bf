"""What goes wrong on the devices, in words and with a run that shows it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ..cost.causes import Place
from . import chart
from .events import Access, Astray, Copy, Event, Lines, Moment, Region, Semaphore, Signal, Wait
from .system import Held, Part, Reached, System
from .told import Row, VerdictKind


@dataclass
class Verdict:
    """One thing that is wrong. `sure`: even if no copy overtakes another; `trace`: a run in which it shows."""

    kind: VerdictKind
    message: str
    places: list[Place]
    sure: bool
    trace: list[Row]


@dataclass
class Verdicts:
    """What is wrong, and how many steps were looked at."""

    found: list[Verdict]
    steps: int


class Use(NamedTuple):
    """One use of a region: by the device's own access, or by a part of a copy that is under way."""

    moment: Moment
    region: Region
    writes: bool
    part: Part | None  # of a copy; None: an access


def judge(lines: Lines) -> Verdicts:
    """Everything that is wrong with a launch in some order."""
    court = _Court(lines)
    found = [*court.outside(), *court.deadlocks(), *court.races()]
    if not court.stuck:
        found += court.unfinished()  # it tells which semaphores are left over for want of a wait
        found += court.left_over()
        if lines.has_barrier:
            early = list(court.too_early(0))
            found += early
            if not early:
                found += court.again()
    return Verdicts(found, court.steps)


class _Court:
    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.system = System(lines)
        self.whole = self.system.whole
        self.stuck = [at for at, line in enumerate(lines.lines) if self.whole.progress[at] < len(line)]
        self._runs: dict[Held | Moment, Reached] = {}
        self._later = 0  # steps of the launch two times in a row
        self._abandoned: set[Semaphore] = set()  # of copies that nobody waits for

    @property
    def steps(self) -> int:
        return self.system.steps + self._later

    def _held(self, copy: Moment, part: Part, *, sure: bool) -> Reached:
        held = self._hold(copy, part, sure=sure)
        if held not in self._runs:
            self._runs[held] = self.system.run(held=held)
        return self._runs[held]

    def _hold(self, copy: Moment, part: Part, *, sure: bool) -> Held:
        """What of a copy is held back: of one with a single semaphore reading and writing end together."""
        event = self.lines.event(copy)
        assert isinstance(event, Copy)
        return Held(copy, part if event.sent is not None else "read", sure)

    def _stopped(self, moment: Moment) -> Reached:
        if moment not in self._runs:
            self._runs[moment] = self.system.run(stop=moment)
        return self._runs[moment]

    # -- devices that are not there --------------------------------------------------------------------------------

    def outside(self) -> Iterator[Verdict]:
        seen: set[object] = set()
        for moment, event in self.lines:
            if isinstance(event, Astray) and _where(event) not in seen:
                seen.add(_where(event))
                does = "signals" if event.what == "signal" else "copies to"
                message = f"{self._name(moment[0])} {does} device {event.device}, and {self._mesh}"
                yield Verdict("outside", message, _places(event), True, [chart.row(self.lines, moment)])

    @property
    def _mesh(self) -> str:
        axes = self.lines.axes
        if len(axes) == 1:
            [(name, size)] = axes.items()
            return f'axis "{name}" has devices 0 to {size - 1}'
        sizes = ", ".join(f'"{name}": {size}' for name, size in axes.items())
        return f"the mesh is {{{sizes}}}"

    # -- waits that never end --------------------------------------------------------------------------------------

    def deadlocks(self) -> Iterator[Verdict]:
        """One for each wait in the text that never ends, those first that nothing is left to end."""
        hopeless = [at for at in self.stuck if sum(self._coming(at).values()) < self._missing(at)]
        groups: dict[object, list[int]] = defaultdict(list)
        for at in hopeless or self.stuck:
            groups[_where(self._at(at))].append(at)
        for group in groups.values():
            at = group[0]
            wait = self._at(at)
            has = self.whole.amounts.get(wait.semaphore, 0)
            message = (
                f"deadlock: {self._name(at)} waits here for {_amount(wait.semaphore, wait.amount)} on "
                f"`{wait.semaphore.shown}`{_in(wait)}, and gets {_amount(wait.semaphore, has) if has else 'nothing'}"
            )
            others = [other for other in group if other != at]
            if others:
                message += f"; {self._names(others)} {'does' if len(others) == 1 else 'do'} as well"
            elif hopeless and len(self.stuck) > 1:
                rest = [other for other in self.stuck if other != at]
                message += f"; so {self._names(rest)} never {'ends' if len(rest) == 1 else 'end'} either"
            elif not hopeless:
                message += f", which {self._names(list(self._coming(at)))} would bring after a wait that never ends"
            waits = {_where(each): each for each in (wait, *map(self._at, self.stuck))}
            told = [place for each in waits.values() for place in _places(each)]
            ends = [chart.row(self.lines, (other, self.whole.progress[other]), "never ends") for other in group[:4]]
            rows = chart.rows(self.lines, self.whole.order, self._about({wait.semaphore}))
            yield Verdict("deadlock", message, told, True, rows + ends)

    def _at(self, line: int) -> Wait:
        """The wait that a line is stuck at."""
        wait = self.lines.lines[line][self.whole.progress[line]]
        assert isinstance(wait, Wait)
        return wait

    def _missing(self, line: int) -> int:
        wait = self._at(line)
        return wait.amount - self.whole.amounts.get(wait.semaphore, 0)

    def _coming(self, line: int) -> dict[int, int]:
        """Which lines would still bring something to what a line waits for, and how much."""
        semaphore = self._at(line).semaphore
        coming = {
            other: sum(_brings(event, semaphore) for event in events[self.whole.progress[other] :])
            for other, events in enumerate(self.lines.lines)
        }
        return {other: amount for other, amount in coming.items() if amount}

    # -- races -----------------------------------------------------------------------------------------------------

    def races(self) -> Iterator[Verdict]:
        """One for each pair of places in the text, of the sure ones first."""
        seen: set[object] = set()
        for sure in (True, False):
            for group in self._uses().values():
                if any(use.writes for use in group):
                    yield from self._races_of(group, seen, sure=sure)

    def _uses(self) -> dict[object, list[Use]]:
        groups: dict[object, list[Use]] = defaultdict(list)
        for moment, event in self.lines:
            uses: list[Use] = []
            if isinstance(event, Access):
                uses = [Use(moment, event.region, event.writes, None)]
            elif isinstance(event, Copy):
                uses = [Use(moment, event.source, False, "read"), Use(moment, event.target, True, "write")]
            for use in uses:
                groups[use.region.home, use.region.buffer].append(use)
        return groups

    def _races_of(self, group: list[Use], seen: set[object], *, sure: bool) -> Iterator[Verdict]:
        for one, other in self._pairs(group, sure=sure):
            key = (self._key(one), self._key(other))
            if not (one.writes or other.writes) or {key, key[::-1]} & seen or not one.region.overlaps(other.region):
                continue
            if self._together(one, other, sure=sure):
                seen.add(key)
                yield self._race(one, other, sure=sure)

    def _pairs(self, group: list[Use], *, sure: bool) -> Iterator[tuple[Use, Use]]:
        """Uses of which the second happens before the first one's end, in some run that has the first's beginning."""
        lines: dict[int, list[Use]] = defaultdict(list)
        for use in group:  # in the order of each line
            lines[use.moment[0]].append(use)
        indices = {line: [use.moment[1] for use in uses] for line, uses in lines.items()}
        cores = {use.moment[0] for use in group if use.part is None}
        for one in group:
            if one.part is None and len(cores) < 2:
                continue  # what races with it are copies
            without = self._without(one, sure=sure)
            for line, uses in lines.items():
                own = line == one.moment[0]
                after = bisect_right(indices[line], one.moment[1]) if own else 0
                for other in uses[after : bisect_left(indices[line], without.progress[line])]:
                    if one.part is not None or (other.part is None and not own):
                        yield one, other

    def _key(self, use: Use) -> object:
        return (_where(self.lines.event(use.moment)), use.part)

    def _together(self, one: Use, other: Use, *, sure: bool) -> bool:
        """Whether the first's beginning can be reached without the second's end, too."""
        if sure and one.part is not None and other.part is not None and self._route(one) == self._route(other):
            return False
        return one.moment[0] == other.moment[0] or self._without(other, sure=sure).has(one.moment)

    def _route(self, use: Use) -> tuple[int, int]:
        copy = self.lines.event(use.moment)
        assert isinstance(copy, Copy)
        return use.moment[0], copy.to

    def _without(self, use: Use, *, sure: bool) -> Reached:
        """What happens if this use does not come to its end, or where it is an access does not happen."""
        return self._stopped(use.moment) if use.part is None else self._held(use.moment, use.part, sure=sure)

    def _race(self, one: Use, other: Use, *, sure: bool) -> Verdict:
        first, second = self.lines.event(one.moment), self.lines.event(other.moment)
        region = other.region if other.region.name == one.region.name else one.region
        home = self._name(other.region.home)
        if one.part is None or other.part is None:
            does = "writes" if other.writes else "reads"
            message = f"{self._name(other.moment[0])} {does} `{region.shown}`{_in(second)} while "
            if one.part is None:
                wrote = "writes" if one.writes else "reads"
                message += f"{self._name(one.moment[0])} {wrote} it{_in(first)}"
            else:
                message += f"{self._copy(one.moment)} may still {one.part} it"
        else:
            message = (
                f"{self._copy(other.moment)} may {other.part} `{region.shown}` of {home} while "
                f"{self._copy(one.moment)} still {one.part}s it"
            )
        if not sure:
            message += ", if a copy that began later arrives first"
        places = _places(second) + _places(first)
        held = self._hold(one.moment, one.part, sure=sure) if one.part is not None else None
        stop = other.moment if other.part is None else None
        run = self.system.run(held=held, stop=stop, ordered=True)
        shown = {one.moment, other.moment}
        about = self._about(_semaphores_of(first) | _semaphores_of(second)) | shown
        last = dict([one.moment, other.moment] if one.moment < other.moment else [other.moment, one.moment])
        about = {moment for moment in about if moment[1] <= last.get(moment[0], moment[1])}
        told = chart.rows(self.lines, run.order, about, shown)
        if stop is not None:
            told.append(chart.row(self.lines, other.moment, "too early"))
        return Verdict("device-race", message, places, sure, told)

    def _copy(self, moment: Moment) -> str:
        copy = self.lines.event(moment)
        where = f" in line {copy.place['line']}" if copy.place is not None else ""
        return f"the copy that {self._name(moment[0])} starts{where}{_in(copy)}"

    def _about(self, semaphores: set[Semaphore]) -> set[Moment]:
        """The events that touch these semaphores."""
        return {moment for moment, event in self.lines if _semaphores_of(event) & semaphores}

    # -- what is left at the end -----------------------------------------------------------------------------------

    def unfinished(self) -> Iterator[Verdict]:
        """Copies that may still be under way when a device that they read or write leaves the kernel."""
        seen: set[object] = set()
        for moment, event in self.lines:
            if not isinstance(event, Copy):
                continue
            parts: tuple[tuple[Part, Semaphore, Region], ...] = (("write", event.received, event.target),)
            if event.sent is not None:
                parts += (("read", event.sent, event.source),)
            for part, semaphore, region in parts:
                home = semaphore.home  # who can wait for it
                if self._held(moment, part, sure=True).progress[home] < len(self.lines.lines[home]):
                    continue
                self._abandoned.add(semaphore)
                key = (_where(event), part)
                if key in seen:
                    continue
                seen.add(key)
                copy = self._copy(moment)
                message = (
                    f"{self._name(home)} may leave the kernel while {copy} still {part}s `{region.shown}`: no wait "
                    f"for `{semaphore.shown}` covers it"
                )
                run = self.system.run(held=self._hold(moment, part, sure=True), ordered=True)
                rows = chart.rows(self.lines, run.order, self._about({semaphore}) | {moment}, {moment})
                rows.append({"device": home, "line": None, "what": "leaves the kernel"})
                yield Verdict("unfinished", message, _places(event), True, rows)

    def left_over(self) -> Iterator[Verdict]:
        """Semaphores that are not zero at the end, one for each name."""
        left = [each for each in self.whole.amounts.items() if each[0] not in self._abandoned]
        names: dict[str, list[tuple[Semaphore, int]]] = defaultdict(list)
        for semaphore, amount in sorted(left, key=lambda each: (each[0].home, each[0].name, each[0].index)):
            names[semaphore.name].append((semaphore, amount))
        for mine in names.values():
            semaphore, amount = mine[0]
            homes = sorted({each.home for each, _ in mine} - {semaphore.home})
            message = f"`{semaphore.shown}` of {self._name(semaphore.home)} is {amount} at the end of the kernel, not 0"
            if homes:
                message += f"; those of {self._names(homes)} are not either"
            givers = [
                moment
                for moment in self.whole.order
                if _brings(self.lines.event(moment), semaphore) and self.lines.event(moment).place is not None
            ]
            rows = chart.rows(self.lines, self.whole.order, self._about({semaphore}))
            rows.append({"device": semaphore.home, "line": None, "what": f"{semaphore.shown} is {amount}"})
            places = _places(self.lines.event(givers[-1])) if givers else []
            yield Verdict("left-over", message, places, True, rows)

    # -- devices that have not begun -------------------------------------------------------------------------------

    def too_early(self, begin: int) -> Iterator[Verdict]:
        """What reaches a device before it is at event `begin` of its line, barriers excepted."""
        seen: set[object] = set()
        for late, line in enumerate(self.lines.lines):
            if begin >= len(line):
                continue
            stopped = self._stopped((late, begin))
            for at, events in enumerate(self.lines.lines):
                for index in range(begin, stopped.progress[at] if at != late else 0):
                    event = events[index]
                    reaches = isinstance(event, Copy) and event.to == late
                    if isinstance(event, Signal) and event.semaphore.kind != "barrier":
                        reaches = event.semaphore.home == late
                    if not reaches or _where(event) in seen:
                        continue
                    seen.add(_where(event))
                    does = "write into" if isinstance(event, Copy) else "signal"
                    again = " for the second of two times in a row" if begin else ""
                    message = (
                        f"{self._name(at)} may {does} {self._name(late)}{_in(event)} before that has begun the kernel"
                        f"{again}: the barrier does not hold it back"
                    )
                    run = self.system.run(stop=(late, begin), ordered=True)
                    barriers = {
                        each.semaphore for each in events if isinstance(each, Wait) and each.semaphore.kind == "barrier"
                    }
                    rows = chart.rows(self.lines, run.order, self._about(barriers) | {(at, index)}, {(at, index)})
                    rows.append({"device": late, "line": None, "what": f"has not begun{again}"})
                    yield Verdict("too-early", message, _places(event), False, rows)

    def again(self) -> Iterator[Verdict]:
        """The same, in the second of two launches in a row that use one barrier."""
        if any(self.whole.amounts.values()) or len({len(line) for line in self.lines.lines}) != 1:
            return
        twice = _Court(self.lines.twice())
        yield from twice.too_early(len(self.lines.lines[0]))
        self._later = twice.steps

    # -- words -----------------------------------------------------------------------------------------------------

    def _name(self, line: int) -> str:
        return self.lines.names[line]

    def _names(self, lines: list[int]) -> str:
        names = [self._name(line) for line in lines]
        if len(names) > 4 and all(name.startswith("device ") for name in names):
            return f"{len(names)} other devices"
        if len(names) > 1 and all(name.startswith("device ") for name in names):
            names = [name.removeprefix("device ") for name in names]
            return f"devices {', '.join(names[:-1])} and {names[-1]}"
        return ", ".join(names)


def _semaphores_of(event: Event) -> set[Semaphore]:
    """Those that an event, with the copy that it begins, touches."""
    if isinstance(event, Signal | Wait):
        return {event.semaphore}
    if isinstance(event, Copy):
        return {event.received} if event.sent is None else {event.received, event.sent}
    return set()


def _brings(event: Event, semaphore: Semaphore) -> int:
    """What an event, with the copy that it begins, adds to a semaphore."""
    if isinstance(event, Signal) and event.semaphore == semaphore:
        return event.amount
    if isinstance(event, Copy):
        return event.size * ((event.received == semaphore) + (event.sent == semaphore))
    return 0


def _where(event: Event) -> object:
    """What tells events of one place in the text from those of others."""
    place = event.place
    return None if place is None else (place["file"], place["line"], place.get("column"))


def _places(event: Event) -> list[Place]:
    return [event.place] if event.place is not None else []


def _in(event: Event) -> str:
    return f" ({event.step})" if event.step else ""


def _amount(semaphore: Semaphore, amount: int) -> str:
    return f"{amount} bytes" if semaphore.kind == "dma" else str(amount)
