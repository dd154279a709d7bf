"""A run as a chart: one column a device, time goes down, and only what matters for the verdict."""

from __future__ import annotations

from collections.abc import Collection

from .events import Copy, Event, EventIndex, EventTraces, Fence, InvalidAccess, MemoryAccess, Signal, Wait
from .report import Row

MAX_ROWS = 24
_COUNTS = ("regular", "barrier", "arrivals")  # kinds of semaphores whose numbers mean something to who reads them


def row(lines: EventTraces, moment: EventIndex, note: str = "") -> Row:
    """One event as a row."""
    event = lines.event(moment)
    row = remark(lines, moment[0], _what(event, moment[0]))
    if event.place is not None:
        row["line"], row["path"] = event.place["line"], event.place["file"]
    if event.step:
        row["step"] = event.step
    if note:
        row["note"] = note
    to = _to(event)
    if to is not None and to != moment[0]:
        row["to"] = to
    return row


def remark(lines: EventTraces, line: int, what: str) -> Row:
    """A row about a line that is no event of it."""
    row: Row = {"device": line, "line": None, "what": what}
    if lines.names[line] != f"device {line}":
        row["name"] = lines.names[line]
    return row


def rows(
    lines: EventTraces, order: list[EventIndex], about: Collection[EventIndex], shown: Collection[EventIndex] = ()
) -> list[Row]:
    """The events of a run that are in `about`: the last ones where they are many, and those that must be `shown`."""
    mine = [moment for moment in order if moment in about]
    late = set(mine[-MAX_ROWS:])
    return [row(lines, moment) for moment in mine if moment in late or moment in shown]


def _what(event: Event, line: int) -> str:
    if isinstance(event, Signal):
        return f"signal {event.semaphore.shown}" + (f" by {event.amount}" if event.amount != 1 else "")
    if isinstance(event, Wait):
        return f"wait {event.semaphore.shown}" + (f" for {event.amount}" if event.semaphore.kind in _COUNTS else "")
    if isinstance(event, Copy):
        to = f" of device {event.to}" if _to(event) not in (None, line) else ""
        ends = [" and ".join(dict.fromkeys(region.shown for region in end)) for end in (event.reads, event.writes)]
        return f"{event.what} {' to '.join(end for end in ends if end)}{to}"
    if isinstance(event, MemoryAccess):
        return f"{'write' if event.writes else 'read'} {event.region.shown}"
    if isinstance(event, Fence):
        return f"fence of {event.space}"
    assert isinstance(event, InvalidAccess)
    return f"{event.what} to device {event.device}"


def _to(event: Event) -> int | None:
    if isinstance(event, Signal) and event.semaphore.kind != "arrivals":
        return event.semaphore.home
    return event.to if isinstance(event, Copy) and not event.on_gpu else None
