"""Events of a kernel on several devices: a straight line of them for each device."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Union

from ..cost.causes import Place

# "arrivals": a barrier of a GPU, which counts what ever arrived at it; "work": how much of a work is done.
Part = Literal["read", "write"]
Kind = Literal["regular", "dma", "barrier", "arrivals", "work"]


@dataclass(frozen=True)
class Semaphore:
    """One semaphore of one line. Who takes from it is this line alone. `home`: the line's number."""

    home: int
    name: str
    index: tuple[int, ...]
    kind: Kind
    phase: int = 1  # of a barrier of a GPU: how much ends a wait
    unit: int = 1  # and how much of it an arrival is: those of copies for several blocks are shares of one
    entry: int = 0  # how often its scope was entered before: each time barriers begin anew

    @property
    def shown(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.index))}]" if self.index else self.name


@dataclass(frozen=True)
class Region:
    """A part of a buffer. `home`: the line whose memory it is in; for memory that cores share, the first of them.

    `box` has (start, size, stride) for each dimension of the buffer, in elements; a start of None depends on data.
    """

    home: int
    buffer: Hashable  # the same in all lines
    name: str
    shape: tuple[int, ...]
    box: tuple[tuple[int | None, int, int], ...]
    space: str = ""  # "smem", "vmem", ...

    @property
    def exact(self) -> bool:
        return all(start is not None for start, _, _ in self.box)

    @property
    def past_the_end(self) -> bool:
        """Whether a part of it that is known lies outside of the buffer."""
        return all(size for _, size, _ in self.box) and any(
            start is not None and not 0 <= start <= whole - 1 - (size - 1) * stride
            for (start, size, stride), whole in zip(self.box, self.shape)
        )

    def overlaps(self, other: Region) -> bool:
        """Whether they share an element for sure."""
        if (self.home, self.buffer) != (other.home, other.buffer) or not (self.exact and other.exact):
            return False
        return all(_meet(mine, theirs) for mine, theirs in zip(self.box, other.box))

    @property
    def shown(self) -> str:
        """The part as it is indexed: `buf[1, 0:8]`."""
        words = []
        for (start, size, stride), whole in zip(self.box, self.shape):
            if start is None:
                words.append("?")
            elif size == whole and stride == 1:
                words.append(":")
            else:
                end = start + (size - 1) * stride + 1
                words.append(str(start) if size == 1 else f"{start}:{end}" + (f":{stride}" if stride > 1 else ""))
        while words and words[-1] == ":":
            words.pop()
        return f"{self.name}[{', '.join(words)}]" if words else self.name


def _meet(mine: tuple[int | None, int, int], theirs: tuple[int | None, int, int]) -> bool:
    (first, count, stride), (second, number, step) = mine, theirs
    assert first is not None and second is not None
    if not count or not number or first + (count - 1) * stride < second or second + (number - 1) * step < first:
        return False
    return stride != step or stride == 1 or (first - second) % stride == 0


@dataclass(frozen=True)
class _Event:
    place: Place | None
    step: str  # of grid and loops: "step 2, loop 1"; empty outside of them

    @property
    def where(self) -> object:
        """A key of events: the same for those of one place in the text."""
        place = self.place
        return None if place is None else (place["file"], place["line"], place.get("column"))

    @property
    def places(self) -> list[Place]:
        return [self.place] if self.place is not None else []

    @property
    def at_step(self) -> str:
        """The step as an aside: " (step 2)"."""
        return f" ({self.step})" if self.step else ""


@dataclass(frozen=True)
class Signal(_Event):
    semaphore: Semaphore
    amount: int


@dataclass(frozen=True)
class Wait(_Event):
    semaphore: Semaphore
    amount: int  # a count; for copies, bytes
    takes: bool = True  # what it waited for


@dataclass(frozen=True)
class Copy(_Event):
    """A copy begins, or other work beside the line: reading first, then writing, it is done some time later.

    What it reads is its own device's or core's, what it writes is `to`'s. Those between the same two lines, of a GPU
    those of one `unit`, are done in the order in which they begin unless one overtakes, as given by `ordered`
    none does: of those of a line, or of the device's.
    """

    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    size: int  # bytes; of a GPU's, how much it counts
    received: Semaphore
    sent: Semaphore | None = None  # None where the copy stays on its device
    what: str = "copy"
    unit: str = ""
    ordered: Literal["", "line", "device"] = ""

    @property
    def to(self) -> int:
        """The line that it goes to."""
        return self.received.home

    @property
    def route(self) -> str | int:
        """What it is done in order with, of the same line."""
        return self.unit or self.to

    @property
    def on_gpu(self) -> bool:
        """Whether it is the work of a GPU's units."""
        return bool(self.unit)

    @property
    def awaited(self) -> Iterator[tuple[Part, Semaphore, Region]]:
        """The parts that have to be over before the kernel is, their semaphores, and an example of what they use.

        What a GPU writes to its main memory is there when the launch is over, without a wait.
        """
        if self.writes and self.writes[0].space != "gmem":
            yield "write", self.received, self.writes[0]
        if self.reads and self.sent is not None:
            yield "read", self.sent, self.reads[0]


@dataclass(frozen=True)
class MemoryAccess(_Event):
    """A read or a write of the device itself."""

    region: Region
    writes: bool
    on_data: bool = False  # whether it happens depends on data


@dataclass(frozen=True)
class Fence(_Event):
    """What the line itself wrote to these memories is seen by copies and matrix units that begin after it."""

    space: str


@dataclass(frozen=True)
class InvalidAccess(_Event):
    """A signal or a copy to a device that is not there."""

    what: Literal["signal", "copy"]
    device: str


Event = Union[Signal, Wait, Copy, MemoryAccess, Fence, InvalidAccess]  # noqa: UP007  a value, not an annotation
EventIndex = tuple[int, int]  # line, index of the event in it


def semaphores_of(event: Event) -> set[Semaphore]:
    """The semaphores that an event touches, with the copy that it begins."""
    if isinstance(event, Signal | Wait):
        return {event.semaphore}
    if isinstance(event, Copy):
        return {event.received} if event.sent is None else {event.received, event.sent}
    return set()


def brings(event: Event, semaphore: Semaphore) -> int:
    """What an event, with the copy that it begins, adds to a semaphore."""
    if isinstance(event, Signal) and event.semaphore == semaphore:
        return event.amount
    if isinstance(event, Copy):
        return event.size * ((event.received == semaphore) + (event.sent == semaphore))
    return 0


@dataclass
class EventTraces:
    """A launch on the devices of a mesh. `names` are those of the lines: "device 1", "device 1 core 0"."""

    lines: list[list[Event]]
    names: list[str] = field(default_factory=list)
    axes: dict[str, int] = field(default_factory=dict)  # sizes of the mesh
    vague: int = 0  # accesses whose place depends on data

    def __post_init__(self) -> None:
        self.names = self.names or [f"device {number}" for number in range(len(self.lines))]

    def __iter__(self) -> Iterator[tuple[EventIndex, Event]]:
        """Every event with its moment, line after line."""
        for at, line in enumerate(self.lines):
            for index, event in enumerate(line):
                yield (at, index), event

    def event(self, moment: EventIndex) -> Event:
        return self.lines[moment[0]][moment[1]]

    @property
    def has_barrier(self) -> bool:
        """Whether the devices of the launch wait for each other by the barrier semaphore."""
        return any(isinstance(event, Wait) and event.semaphore.kind == "barrier" for _, event in self)

    @property
    def count(self) -> int:
        """How many events there are."""
        return sum(map(len, self.lines))

    def twice(self) -> EventTraces:
        """The launch two times in a row: what the first leaves in semaphores is there in the second."""
        return EventTraces([line + line for line in self.lines], self.names, self.axes)
