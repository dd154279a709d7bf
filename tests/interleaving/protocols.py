"""Small protocols, written as events: `Device` has a line each, places are the numbers of the events."""

from __future__ import annotations

from hypothesis import strategies as st

from pallas_lint.probe.interleaving.events import (
    Copy,
    Event,
    EventTraces,
    Fence,
    MemoryAccess,
    Region,
    Semaphore,
    Signal,
    Wait,
)


class Device:
    """What one device does. Buffers are "a" and "b", of two elements; semaphores "s" count, "d" are of copies."""

    def __init__(self, number: int, text: int | None = None) -> None:
        """`text`: which of several texts it runs; a text of its own where none is reported."""
        self.number = number
        self.text = number if text is None else text
        self.line: list[Event] = []

    def _place(self) -> dict:
        return {"file": "kernel.py", "line": 100 * self.text + len(self.line) + 1}

    def signal(self, to: int, amount: int = 1, name: str = "s", kind: str = "regular") -> Device:
        self.line.append(Signal(self._place(), "", Semaphore(to, name, (), kind), amount))
        return self

    def wait(self, amount: int = 1, name: str = "s", *, takes: bool = True, kind: str = "regular") -> Device:
        self.line.append(Wait(self._place(), "", Semaphore(self.number, name, (), kind), amount, takes))
        return self

    def copy(
        self, to: int, source: Region, target: Region, size: int = 1, received: str = "d", sent: str = ""
    ) -> Device:
        """`sent` is the semaphore of the sender; without it the copy has only one."""
        mine = Semaphore(self.number, sent, (), "dma") if sent else None
        self.line.append(Copy(self._place(), "", (source,), (target,), size, Semaphore(to, received, (), "dma"), mine))
        return self

    def arrived(self, size: int = 1, name: str = "d") -> Device:
        return self.wait(size, name, kind="dma")

    def read(self, region: Region) -> Device:
        self.line.append(MemoryAccess(self._place(), "", region, False))
        return self

    def write(self, region: Region) -> Device:
        self.line.append(MemoryAccess(self._place(), "", region, True))
        return self


def part(home: int, name: str, start: int = 0, size: int = 2) -> Region:
    return Region(home, name, name, (2,), ((start, size, 1),))


def lines(*devices: Device) -> EventTraces:
    return EventTraces([device.line for device in devices], axes={"x": len(devices)})


def ring(count: int, *, barrier: int = 2, recv: bool = True, send: bool = True) -> EventTraces:
    """Each device sends to its right neighbour, after a barrier with both."""
    devices = []
    for me in range(count):
        device, right = Device(me, 0), (me + 1) % count
        for other in ((me - 1) % count, right):
            device.signal(other, name="barrier", kind="barrier")
        device.wait(barrier, "barrier", kind="barrier")
        device.copy(right, part(me, "a"), part(right, "b"), 8, "recv", "send")
        if send:
            device.arrived(8, "send")
        if recv:
            device.arrived(8, "recv")
        devices.append(device)
    return lines(*devices)


@st.composite
def protocols(draw: st.DrawFn) -> EventTraces:
    """Two or three devices with a few events each."""
    count = draw(st.integers(2, 3))
    devices = [Device(number) for number in range(count)]
    for _ in range(draw(st.integers(2, 8))):
        device = draw(st.sampled_from(devices))
        other = draw(st.integers(0, count - 1))
        name = draw(st.sampled_from("ab"))
        start, size = draw(st.sampled_from([(0, 2), (0, 1), (1, 1)]))
        what = draw(st.sampled_from(["signal", "wait", "look", "copy", "copy", "arrived", "read", "write"]))
        if what == "signal":
            device.signal(other, draw(st.integers(1, 2)))
        elif what in ("wait", "look"):
            device.wait(draw(st.integers(1, 2)), takes=what == "wait")
        elif what == "copy":
            target = draw(st.sampled_from("ab"))
            names = draw(st.sampled_from([("d", ""), ("d", "e"), ("d", "d")])) if other == device.number else ("d", "e")
            device.copy(other, part(device.number, name, start, size), part(other, target, start, size), size, *names)
        elif what == "arrived":
            device.arrived(draw(st.integers(1, 2)), draw(st.sampled_from("de")))
        else:
            getattr(device, what)(part(device.number, name, start, size))
    return lines(*devices)


class Warpgroup(Device):
    """What a warpgroup does: its memory is shared, barriers count what ever arrived, and units work beside it."""

    def __init__(self, number: int, phase: int = 1) -> None:
        super().__init__(number)
        self.phase = phase
        self.waits: dict[str, int] = {}
        self.begun: dict[str, list[Semaphore]] = {}

    def _barrier(self, name: str) -> Semaphore:
        return Semaphore(0, name, (), "arrivals", self.phase)

    def _work(self, unit: str, reads: tuple[Region, ...], writes: tuple[Region, ...], done: Semaphore) -> Warpgroup:
        ordered = "" if unit in ("loads", "stores") else "line"
        self.line.append(Copy(self._place(), "", reads, writes, 1, done, None, unit, unit, ordered))
        return self

    def arrive(self, barrier: str) -> Warpgroup:
        self.line.append(Signal(self._place(), "", self._barrier(barrier), 1))
        return self

    def awaits(self, barrier: str) -> Warpgroup:
        self.waits[barrier] = self.waits.get(barrier, 0) + 1
        amount = self.waits[barrier] * self.phase
        self.line.append(Wait(self._place(), "", self._barrier(barrier), amount, False))
        return self

    def load(self, region: Region, barrier: str) -> Warpgroup:
        return self._work("loads", (), (region,), self._barrier(barrier))

    def multiply(self, region: Region) -> Warpgroup:
        done = Semaphore(self.number, "wgmma", (len(self.line),), "work")
        self.begun.setdefault("wgmma", []).append(done)
        return self._work("wgmma", (region,), (part(self.number, "acc"),), done)

    def multiplied(self, left: int = 0) -> Warpgroup:
        begun = self.begun.get("wgmma", [])
        if len(begun) > left:
            self.line.append(Wait(self._place(), "", begun[len(begun) - left - 1], 1, False))
        return self

    def fence(self) -> Warpgroup:
        self.line.append(Fence(self._place(), "", "smem"))
        return self


def shared(name: str, start: int = 0, size: int = 2) -> Region:
    return Region(0, name, name, (2,), ((start, size, 1),), "smem")


def block(*groups: Warpgroup) -> EventTraces:
    return EventTraces([group.line for group in groups], [f"warpgroup {group.number}" for group in groups])


@st.composite
def blocks(draw: st.DrawFn) -> EventTraces:
    """Two warpgroups with a few events each."""
    groups = [Warpgroup(number, draw(st.integers(1, 2))) for number in range(2)]
    groups[1].phase = groups[0].phase
    for _ in range(draw(st.integers(2, 9))):
        group = draw(st.sampled_from(groups))
        barrier = draw(st.sampled_from(["full", "empty"]))
        region = shared(draw(st.sampled_from("ab")), *draw(st.sampled_from([(0, 2), (0, 1), (1, 1)])))
        what = draw(
            st.sampled_from(["arrive", "awaits", "awaits", "load", "load", "multiply", "done", "read", "write"])
        )
        if what in ("arrive", "awaits"):
            getattr(group, what)(barrier)
        elif what == "load":
            group.load(region, barrier)
        elif what == "done":
            group.multiplied(draw(st.integers(0, 1)))
        else:
            getattr(group, what)(region)
    return block(*groups)
