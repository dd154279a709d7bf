"""The verdicts about devices: of protocols that one can work out by hand, and against every interleaving."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given

from pallas_lint.probe.interleaving import promela
from pallas_lint.probe.interleaving.events import Copy, EventIndex, EventTraces, InvalidAccess
from pallas_lint.probe.interleaving.verdicts import Verdict, check_traces
from tests.sampling import examples

from .protocols import Device, lines, part, protocols, ring
from .search import TooMany, Use, search

if TYPE_CHECKING:
    from pathlib import Path


def kinds(given: EventTraces) -> list[str]:
    return [verdict.kind for verdict in check_traces(given).found]


def only(given: EventTraces, kind: str) -> Verdict:
    [verdict] = [verdict for verdict in check_traces(given).found if verdict.kind == kind]
    return verdict


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_a_ring_that_is_right(count: int) -> None:
    assert check_traces(ring(count)).found == []


def test_a_barrier_that_waits_for_too_many() -> None:
    verdict = only(ring(4, barrier=3), "deadlock")
    assert verdict.message == (
        "deadlock: device 0 waits here for 3 on `barrier`, and gets 2; devices 1, 2 and 3 do as well"
    )
    assert verdict.places[0]["line"] == 3
    assert [row["device"] for row in verdict.trace if row.get("note") == "never ends"] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("start", "size", "fits"), [(0, 2, True), (1, 1, True), (1, 2, False), (2, 1, False), (2, 0, True), (-1, 1, False)]
)
def test_copies_stay_in_their_buffers(start: int, size: int, fits: bool) -> None:
    device = Device(0).copy(0, part(0, "a"), part(0, "b", start, size)).arrived()
    assert ("past-end" not in kinds(lines(device))) == fits


def test_a_barrier_that_waits_for_too_few() -> None:
    assert set(kinds(ring(4, barrier=1))) == {"left-over", "too-early"}
    # On two devices both neighbours are the same one.
    assert "too-early" not in kinds(ring(2, barrier=1))


def test_the_cause_of_a_wait_comes_before_the_wait() -> None:
    first = Device(0).wait(2)
    second = Device(1).signal(0).wait().signal(2)
    third = Device(2).wait().signal(1)
    verdicts = check_traces(lines(first, second, third)).found
    assert [verdict.places[0]["line"] for verdict in verdicts] == [1]
    assert "so devices 1 and 2 never end either" in verdicts[0].message


def test_devices_that_wait_for_each_other() -> None:
    verdicts = check_traces(lines(Device(0).wait().signal(1), Device(1).wait().signal(0))).found
    assert [verdict.kind for verdict in verdicts] == ["deadlock", "deadlock"]
    assert "which device 1 would bring after a wait that never ends" in verdicts[0].message


def test_a_copy_never_awaited() -> None:
    verdict = only(ring(4, recv=False), "unfinished")
    assert (
        "device 1 may leave the kernel while the copy that device 0 starts in line 4 still writes `b`"
        in verdict.message
    )
    assert kinds(ring(4, recv=False)) == ["unfinished"]
    assert "still reads `a`" in only(ring(4, send=False), "unfinished").message


def test_a_read_before_the_copy_has_arrived() -> None:
    sender = Device(0).copy(1, part(0, "a"), part(1, "b"), 8, "d", "e").arrived(8, "e")
    reader = Device(1).read(part(1, "b")).arrived(8)
    verdict = only(lines(sender, reader), "device-race")
    assert verdict.sure
    assert verdict.message == "device 1 reads `b` while the copy that device 0 starts in line 1 may still write it"
    assert [place["line"] for place in verdict.places] == [101, 1]
    assert verdict.trace[-1] == {
        "device": 1, "line": 101, "path": "kernel.py", "what": "read b", "note": "too early"
    }  # fmt: skip


def test_copies_that_may_overtake_each_other_are_not_sure() -> None:
    sender = Device(0)
    for start in (0, 1):
        sender.copy(1, part(0, "a", start, 1), part(1, "b", start, 1), 8, "d", "e").arrived(8, "e")
    reader = Device(1).arrived(8).read(part(1, "b", 0, 1)).arrived(8).read(part(1, "b", 1, 1))
    verdict = only(lines(sender, reader), "device-race")
    assert not verdict.sure
    assert verdict.message.endswith(", if a copy that began later arrives first")


def test_a_device_that_is_not_there() -> None:
    device = Device(0)
    device.line.append(InvalidAccess({"file": "kernel.py", "line": 1}, "step 1", "copy", "1"))
    verdict = only(lines(device), "outside")
    assert verdict.message == 'device 0 copies to device 1, and axis "x" has devices 0 to 0'


def test_two_launches_in_a_row() -> None:
    """A barrier with both neighbours lets a device get one launch ahead of those two hops away."""

    def gather(count: int) -> EventTraces:
        devices = []
        for me in range(count):
            device = Device(me, 0)
            for other in ((me - 1) % count, (me + 1) % count):
                device.signal(other, name="barrier", kind="barrier")
            device.wait(2, "barrier", kind="barrier")
            for other in range(count):
                if other != me:
                    device.copy(other, part(me, "a"), part(other, f"b{me}"), 8, f"recv{me}", "send").arrived(8, "send")
            for other in range(count):
                if other != me:
                    device.arrived(8, f"recv{other}")
            devices.append(device)
        return lines(*devices)

    assert kinds(gather(3)) == []
    assert set(kinds(gather(4))) == {"too-early"}


def test_many_devices_take_little() -> None:
    assert check_traces(ring(64)).steps < 200_000


# -- against every interleaving ----------------------------------------------------------------------------------------


def uses(given: EventTraces, verdicts: list[Verdict], *, sure: bool) -> set[frozenset[int]]:
    """Races as the lines of their places, which tell events apart."""
    return {
        frozenset(place["line"] for place in verdict.places)
        for verdict in verdicts
        if verdict.kind == "device-race" and (verdict.sure or not sure)
    }


def route(given: EventTraces, moment: EventIndex) -> tuple[int, int] | None:
    event = given.event(moment)
    return (moment[0], event.to) if isinstance(event, Copy) else None


def as_lines(given: EventTraces, races: set[frozenset[Use]], *, sure: bool) -> set[frozenset[int]]:
    found = set()
    for race in races:
        moments = [moment for moment, _ in race]
        routes = {route(given, moment) for moment in moments}
        if sure and len(routes) == 1 and None not in routes:
            continue  # copies of one route, in order
        found.add(frozenset(given.event(moment).place["line"] for moment in moments))
    return found


@pytest.mark.parametrize("sure", [True, False])
@examples(150)
@given(traces=protocols())
def test_the_verdicts_are_those_of_every_interleaving(sure: bool, traces: EventTraces) -> None:
    try:
        all_of_them = search(traces, sure=sure)
    except TooMany:
        assume(False)
    found = check_traces(traces).found
    reported = {verdict.kind for verdict in found}
    assert ("deadlock" in reported) == all_of_them.deadlock
    assert uses(traces, found, sure=sure) == as_lines(traces, all_of_them.races, sure=sure)
    if not all_of_them.deadlock:
        [left] = all_of_them.left
        assert bool({"left-over", "unfinished"} & reported) == bool(left)
        if sure:
            early = {traces.event(moment).place["line"] for moment, _ in all_of_them.unfinished}
            assert {v.places[0]["line"] for v in found if v.kind == "unfinished"} == early


# -- against spin ------------------------------------------------------------------------------------------------------

CASES = {
    "ring": ring(3),
    "a barrier that waits for too many": ring(3, barrier=3),
    "a barrier that waits for too few": ring(3, barrier=1),
    "nothing waits for what it receives": ring(2, recv=False),
    "nothing waits for what it sends": ring(2, send=False),
    "a read too early": lines(
        Device(0).copy(1, part(0, "a"), part(1, "b"), 8, "d", "e").arrived(8, "e"),
        Device(1).read(part(1, "b")).arrived(8),
    ),
    "a slot that is free": lines(
        Device(0).copy(1, part(0, "a"), part(1, "b"), 8, "d", "e").arrived(8, "e").wait()
        .copy(1, part(0, "a"), part(1, "b"), 8, "d", "e").arrived(8, "e"),
        Device(1).arrived(8).read(part(1, "b")).signal(0).arrived(8),
    ),
    "a slot that is not free yet": lines(
        Device(0).copy(1, part(0, "a"), part(1, "b"), 8, "d", "e").arrived(8, "e").wait()
        .copy(1, part(0, "a"), part(1, "b"), 8, "d", "e").arrived(8, "e"),
        Device(1).arrived(8).signal(0).read(part(1, "b")).arrived(8),
    ),
    "a local copy that comes too late": lines(
        Device(0).copy(0, part(0, "a"), part(0, "b")).read(part(0, "b")).arrived()
    ),
    "a local copy that is": lines(Device(0).copy(0, part(0, "a"), part(0, "b")).arrived().read(part(0, "b"))),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_spin_agrees(name: str, tmp_path: Path) -> None:
    spin = shutil.which("spin")
    assert spin is not None, "spin is installed with `apt-get install spin`"
    (tmp_path / "kernel.pml").write_text(promela.model(CASES[name]), encoding="utf-8")
    subprocess.run([spin, "-a", "kernel.pml"], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    subprocess.run(["gcc", "-O1", "-DSAFETY", "-o", "pan", "pan.c"], cwd=tmp_path, check=True, timeout=300)
    ran = subprocess.run(["./pan", "-m100000"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    # What is too early for a device that has not begun is not in the model.
    wrong = [verdict.kind for verdict in check_traces(CASES[name]).found if verdict.kind != "too-early"]
    assert ("errors: 0" in ran.stdout) == (not wrong), ran.stdout
