"""What devices do in a kernel: a straight line of events for each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Union

from ..cost.causes import Place

Kind = Literal["regular", "dma", "barrier"]


@dataclass(frozen=True)
class Semaphore:
    """One semaphore of one line, which alone waits for it. `home`: the line's number."""

    home: int
    name: str
    index: tuple[int, ...]
    kind: Kind

    @property
    def shown(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.index))}]" if self.index else self.name


@dataclass(frozen=True)
class Region:
    """A part of a buffer. `home`: the line whose memory it is in; for memory that cores share, the first of them.

    `box` has (start, size, stride) for each dimension of the buffer, in elements; a start of None hangs on data.
    """

    home: int
    buffer: Hashable  # the same in all lines
    name: str
    shape: tuple[int, ...]
    box: tuple[tuple[int | None, int, int], ...]

    @property
    def exact(self) -> bool:
        return all(start is not None for start, _, _ in self.box)

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
    """A copy begins. What it reads is its own device's or core's, what it writes is `to`'s."""

    source: Region
    target: Region
    size: int  # bytes
    received: Semaphore
    sent: Semaphore | None = None  # None where the copy stays on its device

    @property
    def to(self) -> int:
        """The line that it goes to."""
        return self.received.home


@dataclass(frozen=True)
class Access(_Event):
    """A read or a write of the device itself."""

    region: Region
    writes: bool


@dataclass(frozen=True)
class Astray(_Event):
    """A signal or a copy to a device that is not there."""

    what: Literal["signal", "copy"]
    device: str


Event = Union[Signal, Wait, Copy, Access, Astray]  # noqa: UP007  a value, not an annotation
Moment = tuple[int, int]  # line, index of the event in it


@dataclass
class Lines:
    """A launch on the devices of a mesh. `names` are those of the lines: "device 1", "device 1 core 0"."""

    lines: list[list[Event]]
    names: list[str] = field(default_factory=list)
    axes: dict[str, int] = field(default_factory=dict)  # sizes of the mesh
    vague: int = 0  # accesses whose place hangs on data

    def __post_init__(self) -> None:
        self.names = self.names or [f"device {number}" for number in range(len(self.lines))]

    def __iter__(self) -> Iterator[tuple[Moment, Event]]:
        """Every event with its moment, line after line."""
        for at, line in enumerate(self.lines):
            for index, event in enumerate(line):
                yield (at, index), event

    def event(self, moment: Moment) -> Event:
        return self.lines[moment[0]][moment[1]]

    @property
    def has_barrier(self) -> bool:
        """Whether the devices of the launch wait for each other by the barrier semaphore."""
        return any(isinstance(event, Wait) and event.semaphore.kind == "barrier" for _, event in self)

    @property
    def count(self) -> int:
        """How many events there are."""
        return sum(map(len, self.lines))

    def twice(self) -> Lines:
        """The launch two times in a row: what the first leaves in semaphores is there in the second."""
        return Lines([line + line for line in self.lines], self.names, self.axes)
