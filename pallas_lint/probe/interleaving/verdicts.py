"""Faults of kernels on several devices, in words and with a run that shows them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from . import chart
from .events import (
    Copy,
    Event,
    EventTraces,
    InvalidAccess,
    MemoryAccess,
    Semaphore,
    Signal,
    Wait,
    brings,
    semaphores_of,
)
from .report import Verdict
from .runs import Runs, counted
from .system import RunEnd
from .uses import ConflictIndex, RegionUse
from .warpgroups import overruns, unfenced


@dataclass
class Verdicts:
    """What is wrong, and how many steps were looked at."""

    found: list[Verdict]
    steps: int


def check_traces(lines: EventTraces) -> Verdicts:
    """Everything that is wrong with a launch in some order."""
    court = _Checker(lines)
    found = [*court.outside(), *court.past_the_end(), *court.deadlocks(), *court.races()]
    if not court.stuck:
        found += court.unfinished()  # it shows which semaphores are left over because nothing waits
        found += court.left_over()
        found += [*overruns(court), *unfenced(court)]
        if lines.has_barrier:
            early = list(court.too_early(0))
            found += early
            if not early:
                found += court.again()
    return Verdicts(found, court.steps)


class _Checker(Runs):
    def __init__(self, lines: EventTraces) -> None:
        super().__init__(lines)
        self._later = 0  # steps of the launch two times in a row
        self._abandoned: set[Semaphore] = set()  # of copies that are never awaited
        self._raced: set[object] = set()  # places of copies with known races

    @property
    def steps(self) -> int:
        return self.system.steps + self._later

    # -- devices that are not there --------------------------------------------------------------------------------

    def outside(self) -> Iterator[Verdict]:
        seen: set[object] = set()
        for moment, event in self.lines:
            if isinstance(event, InvalidAccess) and event.where not in seen:
                seen.add(event.where)
                does = "signals" if event.what == "signal" else "copies to"
                message = f"{self.name(moment[0])} {does} device {event.device}, and {self._mesh}"
                yield Verdict("outside", message, event.places, True, [chart.row(self.lines, moment)])

    def past_the_end(self) -> Iterator[Verdict]:
        """Copies that leave their buffers, one for each place in the text; the hardware of GPUs cuts theirs off."""
        seen: set[object] = set()
        for moment, event in self.lines:
            if not isinstance(event, Copy) or event.on_gpu:
                continue
            for does, regions in (("reads", event.reads), ("writes", event.writes)):
                region = next((each for each in regions if each.past_the_end), None)
                if region is None or (event.where, does) in seen:
                    continue
                seen.add((event.where, does))
                of_device = f" of {self.name(region.home)}" if self.lines.axes else ""
                message = f"{self.copy(moment)} {does} `{region.shown}`{of_device}, outside of its shape {region.shape}"
                yield Verdict("past-end", message, event.places, True, [chart.row(self.lines, moment)])

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
            groups[self._at(at).where].append(at)
        for group in groups.values():
            at = group[0]
            wait = self._at(at)
            has = self.whole.amounts.get(wait.semaphore, 0)
            message = f"deadlock: {self.name(at)} waits here for {_requirement(wait, has)}"
            others = [other for other in group if other != at]
            if others:
                message += f"; {self.names(others)} {'does' if len(others) == 1 else 'do'} as well"
            elif hopeless and len(self.stuck) > 1:
                rest = [other for other in self.stuck if other != at]
                message += f"; so {self.names(rest)} never {'ends' if len(rest) == 1 else 'end'} either"
            elif not hopeless:
                message += f", which {self.names(list(self._coming(at)))} would bring after a wait that never ends"
            waits = {each.where: each for each in (wait, *map(self._at, self.stuck))}
            waiting = [place for each in waits.values() for place in each.places]
            ends = [chart.row(self.lines, (other, self.whole.progress[other]), "never ends") for other in group[:4]]
            rows = chart.rows(self.lines, self.whole.order, self.about({wait.semaphore}))
            yield Verdict("deadlock", message, waiting, True, rows + ends)

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
            other: sum(brings(event, semaphore) for event in events[self.whole.progress[other] :])
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

    def _uses(self) -> dict[object, list[RegionUse]]:
        groups: dict[object, list[RegionUse]] = defaultdict(list)
        for moment, event in self.lines:
            uses: list[RegionUse] = []
            if isinstance(event, MemoryAccess):
                uses = [RegionUse(moment, event.region, event.writes, None)]
            elif isinstance(event, Copy):
                uses = [RegionUse(moment, region, False, "read") for region in event.reads]
                uses += [RegionUse(moment, region, True, "write") for region in event.writes]
            for use in uses:
                groups[use.region.home, use.region.buffer].append(use)
        return groups

    def _races_of(self, group: list[RegionUse], seen: set[object], *, sure: bool) -> Iterator[Verdict]:
        for one, other in self._pairs(group, sure=sure):
            key = (self._key(one), self._key(other))
            if {key, key[::-1]} & seen or self._in_order(one, other, sure=sure):
                continue
            seen.add(key)
            self._raced.update(self.lines.event(use.moment).where for use in (one, other) if use.part)
            yield self._race(one, other, sure=sure)

    def _pairs(self, group: list[RegionUse], *, sure: bool) -> Iterator[tuple[RegionUse, RegionUse]]:
        """Uses of which each can begin before the other one's end, but for works that are done in order."""
        near = ConflictIndex(group)

        def progress(use: RegionUse) -> list[int]:
            return self._without(use, sure=sure).progress

        cores = {use.moment[0] for use in group if use.part is None}
        for one in group:
            if one.part is None and len(cores) < 2:
                continue  # what races with it are copies
            if one.part is not None and self._is_known(one):
                continue
            without = self._without(one, sure=sure)
            for theirs in near.of(one):
                own = theirs.line == one.moment[0]
                last = bisect_left(theirs.indices, without.progress[theirs.line])
                if own:
                    uses = theirs.uses[bisect_right(theirs.indices, one.moment[1]) : last]
                else:
                    uses = theirs.unblocking(one, last, progress)
                self.system.spend(len(uses))
                for other in uses:
                    if one.part is not None and self._is_known(one):
                        break
                    if one.part is not None or (other.part is None and not own):
                        yield one, other

    def _is_known(self, use: RegionUse) -> bool:
        """Whether a race of this work of a GPU is known: more of them have the same cause."""
        copy = self.lines.event(use.moment)
        return isinstance(copy, Copy) and copy.on_gpu and copy.where in self._raced

    def _key(self, use: RegionUse) -> object:
        return (self.lines.event(use.moment).where, use.part)

    def _in_order(self, one: RegionUse, other: RegionUse, *, sure: bool) -> bool:
        """Whether two works are done one after the other. The matrix unit of a GPU is one for all of its warpgroups."""
        first, second = self.lines.event(one.moment), self.lines.event(other.moment)
        if not isinstance(first, Copy) or not isinstance(second, Copy) or first.route != second.route:
            return False
        if one.moment[0] == other.moment[0]:
            return sure or bool(first.ordered)
        return first.ordered == "device" and (
            self.before(one.moment, other.moment) or self.before(other.moment, one.moment)
        )

    def _without(self, use: RegionUse, *, sure: bool) -> RunEnd:
        """What happens if this use does not come to its end, or where it is an access does not happen."""
        return self.stopped(use.moment) if use.part is None else self.held(use.moment, use.part, sure=sure)

    def _race(self, one: RegionUse, other: RegionUse, *, sure: bool) -> Verdict:
        first, second = self.lines.event(one.moment), self.lines.event(other.moment)
        region = other.region if other.region.name == one.region.name else one.region
        if one.part is None or other.part is None:
            does = "writes" if other.writes else "reads"
            message = f"{self.name(other.moment[0])} {does} `{region.shown}`{second.at_step} while "
            if one.part is None:
                wrote = "writes" if one.writes else "reads"
                message += f"{self.name(one.moment[0])} {wrote} it{first.at_step}"
            else:
                message += f"{self.copy(one.moment)} may still {one.part} it"
        else:
            of_device = f" of {self.name(other.region.home)}" if self.lines.axes else ""
            message = (
                f"{self.copy(other.moment)} may {other.part} `{region.shown}`{of_device} while "
                f"{self.copy(one.moment)} still {one.part}s it"
            )
        if not sure:
            message += ", if a copy that began later arrives first"
        alike = one.part is other.part is None and one.writes and first.where == second.where is not None
        if alike:
            message += ", which is right only if both write the same"
        places = second.places + first.places
        held = self.hold(one.moment, one.part, sure=sure) if one.part is not None else None
        stop = other.moment if other.part is None else None
        run = self.system.run(held=held, stop=stop, ordered=True)
        shown = {one.moment, other.moment}
        about = self.about(semaphores_of(first) | semaphores_of(second)) | shown
        last = dict([one.moment, other.moment] if one.moment < other.moment else [other.moment, one.moment])
        about = {moment for moment in about if moment[1] <= last.get(moment[0], moment[1])}
        trace = chart.rows(self.lines, run.order, about, shown)
        if stop is not None:
            trace.append(chart.row(self.lines, other.moment, "too early"))
        on_data = any(isinstance(event, MemoryAccess) and event.on_data for event in (first, second))
        if alike:
            return Verdict("alike", message, places, False, trace, on_data)
        return Verdict("device-race", message, places, sure and not _often_harmless(first, one, other), trace, on_data)

    # -- what is left at the end -----------------------------------------------------------------------------------

    def unfinished(self) -> Iterator[Verdict]:
        """Copies that may still be under way when a device that they read or write leaves the kernel."""
        seen: set[object] = set()
        for moment, event in self.lines:
            if not isinstance(event, Copy) or (event.on_gpu and event.where in self._raced):
                continue
            for part, semaphore, region in event.awaited:
                home = semaphore.home
                sure = self.ends_without(moment, part, semaphore, sure=True)
                if not sure and not (event.on_gpu and self.ends_without(moment, part, semaphore, sure=False)):
                    continue
                self._abandoned.add(semaphore)
                key = (event.where, part)
                if key in seen:
                    continue
                seen.add(key)
                copy = self.copy(moment)
                message = (
                    f"{self.name(home)} may leave the kernel while {copy} still {part}s `{region.shown}`: no wait "
                    f"for `{semaphore.shown}` covers it"
                )
                if event.on_gpu:
                    message = f"the kernel may end while {copy} still {part}s `{region.shown}`: nothing waits for it"
                run = self.system.run(held=self.hold(moment, part, sure=sure), ordered=True)
                rows = chart.rows(self.lines, run.order, self.about({semaphore}) | {moment}, {moment})
                rows.append(chart.remark(self.lines, home, "leaves the kernel"))
                yield Verdict("unfinished", message, event.places, sure and not event.on_gpu, rows)

    def left_over(self) -> Iterator[Verdict]:
        """Semaphores that are not zero at the end, one for each name."""
        ours = [each for each in self.whole.amounts.items() if each[0].kind not in ("arrivals", "work")]
        left = [each for each in ours if each[0] not in self._abandoned]
        names: dict[str, list[tuple[Semaphore, int]]] = defaultdict(list)
        for semaphore, amount in sorted(left, key=lambda each: (each[0].home, each[0].name, each[0].index)):
            names[semaphore.name].append((semaphore, amount))
        for mine in names.values():
            semaphore, amount = mine[0]
            homes = sorted({each.home for each, _ in mine} - {semaphore.home})
            message = f"`{semaphore.shown}` of {self.name(semaphore.home)} is {amount} at the end of the kernel, not 0"
            if homes:
                message += f"; those of {self.names(homes)} are not either"
            givers = [
                moment
                for moment in self.whole.order
                if brings(self.lines.event(moment), semaphore) and self.lines.event(moment).place is not None
            ]
            rows = chart.rows(self.lines, self.whole.order, self.about({semaphore}))
            rows.append(chart.remark(self.lines, semaphore.home, f"{semaphore.shown} is {amount}"))
            places = self.lines.event(givers[-1]).places if givers else []
            yield Verdict("left-over", message, places, True, rows)

    # -- devices that have not begun -------------------------------------------------------------------------------

    def too_early(self, begin: int) -> Iterator[Verdict]:
        """What reaches a device before it is at event `begin` of its line, barriers excepted."""
        seen: set[object] = set()
        for late, line in enumerate(self.lines.lines):
            if begin >= len(line):
                continue
            stopped = self.stopped((late, begin))
            for at, events in enumerate(self.lines.lines):
                for index in range(begin, stopped.progress[at] if at != late else 0):
                    event = events[index]
                    reaches = isinstance(event, Copy) and event.to == late
                    if isinstance(event, Signal) and event.semaphore.kind != "barrier":
                        reaches = event.semaphore.home == late
                    if not reaches or event.where in seen:
                        continue
                    seen.add(event.where)
                    does = "write into" if isinstance(event, Copy) else "signal"
                    again = " for the second of two times in a row" if begin else ""
                    message = (
                        f"{self.name(at)} may {does} {self.name(late)}{event.at_step} before that has begun the kernel"
                        f"{again}: the barrier does not hold it back"
                    )
                    run = self.system.run(stop=(late, begin), ordered=True)
                    barriers = {
                        each.semaphore for each in events if isinstance(each, Wait) and each.semaphore.kind == "barrier"
                    }
                    rows = chart.rows(self.lines, run.order, self.about(barriers) | {(at, index)}, {(at, index)})
                    rows.append(chart.remark(self.lines, late, f"has not begun{again}"))
                    yield Verdict("too-early", message, event.places, False, rows)

    def again(self) -> Iterator[Verdict]:
        """Signals that come too early in the second of two launches in a row that use one barrier."""
        if any(self.whole.amounts.values()) or len({len(line) for line in self.lines.lines}) != 1:
            return
        twice = _Checker(self.lines.twice())
        yield from twice.too_early(len(self.lines.lines[0]))
        self._later = twice.steps


def _requirement(wait: Wait, has: int) -> str:
    """What a wait that never ends is for, and what it gets."""
    semaphore = wait.semaphore
    if semaphore.kind == "arrivals":
        missed = wait.amount - semaphore.phase  # what was there when it completed the last time
        got, wanted = max(has - missed, 0) // semaphore.unit, semaphore.phase // semaphore.unit
        return f"`{semaphore.shown}`{wait.at_step}, and gets {got or 'none'} of {wanted} arrival{'s' * (wanted > 1)}"
    gets = counted(semaphore, has) if has else "nothing"
    return f"{counted(semaphore, wait.amount)} on `{semaphore.shown}`{wait.at_step}, and gets {gets}"


def _often_harmless(event: Event, one: RegionUse, other: RegionUse) -> bool:
    """Whether a race with this work of a GPU is one that kernels seldom lose: two units, of which one is far quicker,
    or a store that has read its source before any write to it (measured on an H100). Loads are slow. Answers
    on clusters that are cancelled come from Blackwell only, where nothing was measured.
    """
    if not isinstance(event, Copy) or not event.on_gpu:
        return False
    return bool(event.ordered) or event.what == "cluster cancel" or one.part == "read" or other.part is not None
