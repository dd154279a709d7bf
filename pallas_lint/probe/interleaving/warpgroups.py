"""Faults with the barriers and fences of a GPU's warpgroups alone."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from . import chart
from .events import Copy, EventIndex, Fence, MemoryAccess, Region, Wait, brings
from .report import Verdict
from .runs import Runs


def overruns(runs: Runs) -> Iterator[Verdict]:
    """Barriers that complete twice before any wait for the first time: a wait sees only the last."""
    seen: set[object] = set()
    for moment, event in runs.lines:
        if not isinstance(event, Wait) or event.semaphore.kind != "arrivals" or event.where in seen:
            continue
        barrier = event.semaphore
        if runs.stopped(moment).amounts.get(barrier, 0) < event.amount + barrier.phase:
            continue
        seen.add(event.where)
        message = (
            f"`{barrier.shown}` may complete twice before {runs.name(moment[0])} waits for it{event.at_step}: "
            "a wait shows only whether it completed an odd number of times"
        )
        run = runs.system.run(stop=moment, ordered=True)
        rows = chart.rows(runs.lines, run.order, runs.about({barrier}))
        arrivals = [each for each in run.order if brings(runs.lines.event(each), barrier)]
        places = [place for each in arrivals[-1:] for place in runs.lines.event(each).places]
        rows.append(chart.row(runs.lines, moment, "too late"))
        yield Verdict("overrun", message, event.places + places, True, rows)


def unfenced(runs: Runs) -> Iterator[Verdict]:
    """What a line writes itself, read by a copy or a matrix unit with no fence in between."""
    writes: dict[object, list[EventIndex]] = defaultdict(list)
    fences: dict[tuple[int, str], list[int]] = defaultdict(list)
    for moment, event in runs.lines:
        if isinstance(event, MemoryAccess) and event.writes and event.region.space in ("smem", "tmem"):
            writes[event.region.home, event.region.buffer].append(moment)
        elif isinstance(event, Fence):
            fences[moment[0], event.space].append(moment[1])
    seen: set[object] = set()
    for moment, event in runs.lines if writes else ():
        if not isinstance(event, Copy) or not event.on_gpu:  # a TPU's copies see what was written to its SMEM before
            continue
        for region in event.reads:
            write = _last_write(runs, writes.get((region.home, region.buffer), []), region, moment)
            if write is None or (runs.lines.event(write).where, event.where) in seen:
                continue
            line, at = write
            own = fences[line, region.space]
            fence = next((index for index in own[bisect_right(own, at) :]), None)
            if fence is not None and runs.before((line, fence), moment):
                continue
            first = runs.lines.event(write)
            seen.add((first.where, event.where))
            message = (
                f"the {event.what} that {runs.name(moment[0])} starts{event.at_step} may not see what "
                f"{runs.name(line)} wrote to `{region.shown}`: no `commit_{region.space}` in between"
            )
            rows = chart.rows(runs.lines, runs.whole.order, {moment}, {moment})
            rows.insert(0, chart.row(runs.lines, write, "not committed"))
            yield Verdict("unfenced", message, event.places + first.places, False, rows)


def _last_write(runs: Runs, writes: list[EventIndex], region: Region, moment: EventIndex) -> EventIndex | None:
    """The last of these writes that certainly comes before an event and concerns this region."""
    for write in reversed(writes):
        event = runs.lines.event(write)
        if isinstance(event, MemoryAccess) and event.region.overlaps(region) and runs.before(write, moment):
            return write
    return None
