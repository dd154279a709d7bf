"""What schedules of four lines of libtpu cost: they are read, run and reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pallas_lint.probe.cost.chips import CHIPS, LIKELY
from pallas_lint.probe.cost.listing import read
from pallas_lint.probe.cost.machine import Limits, Machine
from pallas_lint.probe.cost.prediction import Prediction, predict
from pallas_lint.probe.cost.program import translate
from tests.sampling import by_day

SCHEDULES = Path(__file__).parent / "schedules"
MILLION = 65536 * 16384 * 4  # bytes of the operand of `rows`: a million blocks
PICKED = [0, 1, 2, 3, 0, 0, 6, 7]
# Microseconds, what bounds it, bundles issued, bytes read and written, cores. The same figures as of the full run.
EXPECTED: dict[str, tuple[float, str, int, int, int, int]] = {
    "chosen_rows-tpu7x-0.0.42.1": (4.28, "latency", 1319, 918016, 1048576, 1),
    "chosen_rows-tpu7x-0.0.50.1": (4.28, "latency", 1317, 918016, 1048576, 1),
    "chosen_rows-tpu7x-0.0.52": (4.28, "latency", 1337, 918016, 1048576, 1),
    "chosen_rows-v5e-0.0.17.1": (4.62, "latency", 1079, 918016, 1048576, 1),
    "chosen_rows-v5e-0.0.42.1": (4.63, "latency", 1097, 918016, 1048576, 1),
    "chosen_rows-v5e-0.0.50.1": (4.63, "latency", 1097, 918016, 1048576, 1),
    "chosen_rows-v5e-0.0.52": (4.63, "latency", 1097, 918016, 1048576, 1),
    "matmul-v6e-0.0.17.1": (1375.49, "latency", 1602522, 268435456, 8388608, 1),
    "matmul-v6e-0.0.42.1": (1373.15, "latency", 1598429, 268435456, 8388608, 1),
    "matmul-v6e-0.0.50.1": (1371.83, "latency", 1618907, 268435456, 8388608, 1),
    "matmul-v6e-0.0.52": (1375.2, "latency", 1627101, 268435456, 8388608, 1),
    "parallel_rows-v5p-0.0.17.1": (159510.95, "latency", 51904756, MILLION, MILLION, 2),
    "parallel_rows-v5p-0.0.42.1": (159510.95, "latency", 51904758, MILLION, MILLION, 2),
    "parallel_rows-v5p-0.0.50.1": (159510.95, "latency", 51904758, MILLION, MILLION, 2),
    "parallel_rows-v5p-0.0.52": (159610.81, "latency", 52429048, MILLION, MILLION, 2),
    "rows-v4-0.0.17.1": (324220.48, "latency", 74449009, MILLION, MILLION, 1),
    "rows-v4-0.0.42.1": (324220.48, "latency", 75497585, MILLION, MILLION, 1),
    "rows-v4-0.0.50.1": (324220.48, "latency", 76546161, MILLION, MILLION, 1),
    "rows-v4-0.0.52": (323887.6, "latency", 75497583, MILLION, MILLION, 1),
    "rows-v5e-0.0.17.1": (315344.37, "latency", 65011811, MILLION, MILLION, 1),
    "rows-v5e-0.0.42.1": (315344.37, "latency", 65011811, MILLION, MILLION, 1),
    "rows-v5e-0.0.50.1": (315577.38, "latency", 66060389, MILLION, MILLION, 1),
    "rows-v5e-0.0.52": (315577.38, "latency", 66060389, MILLION, MILLION, 1),
}


def predicted(
    name: str, given: dict[int, list[int]] | None = None, limits: Limits | None = None, text: str | None = None,
    *, skipping: bool = True,
) -> Prediction:  # fmt: skip
    file = SCHEDULES / f"{name}.txt"
    values = {0: PICKED} if given is None and name.startswith("chosen") else given
    use = "" if text else file.with_suffix(".use").read_text()
    return predict(text or file.read_text(), use, name.split("-")[1], values, limits, skipping=skipping)


def test_all_schedules_are_expected() -> None:
    assert {file.stem for file in SCHEDULES.glob("*.txt")} == set(EXPECTED)


@pytest.mark.parametrize("name", by_day(sorted(EXPECTED), 8))
def test_what_it_costs(name: str) -> None:
    # A million steps of the grid are eight million segments of the schedule: nearly all of them are skipped.
    found = predicted(name, limits=Limits(steps=400_000, seconds=1000))
    assert found.microseconds is not None, found.doubts
    assert found.low is not None and found.high is not None and found.low < found.microseconds < found.high
    reported = round(found.microseconds, 2), found.bound, found.issue, found.read, found.written, found.cores
    assert reported == EXPECTED[name]
    shares = [line.share for line in found.lines]
    assert shares == sorted(shares, reverse=True) and 0.98 < sum(shares) < 1.01
    assert {line.place[0] for line in found.lines if line.place is not None} == {"kernels.py"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in EXPECTED if "rows-v" not in name or "chosen" in name])
def test_skipping_changes_nothing(name: str) -> None:
    limits = Limits(unwatched=0, seconds=1000)
    some, whole = predicted(name, limits=limits), predicted(name, limits=limits, skipping=False)
    assert some.transfers == whole.transfers[: len(some.transfers)] != ()
    assert replace(some, transfers=(), waits=()) == replace(whole, transfers=(), waits=())


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["rows-v5e-0.0.50.1", "parallel_rows-v5p-0.0.50.1"])
def test_skipping_a_million_steps_changes_nothing(name: str) -> None:
    program = translate(read((SCHEDULES / f"{name}.txt").read_text()), {})
    runs = []
    for skipping in (True, False):
        machine = Machine(program, CHIPS[name.split("-")[1]], LIKELY, {})
        machine.run(Limits(10**9, 1000), skipping=skipping)
        runs.append((machine.state.time, machine.tally.numbers()))
    assert runs[0] == runs[1]


def test_what_is_prefetched_counts() -> None:
    name = "chosen_rows-v5e-0.0.50.1"
    known, idle = predicted(name), predicted(name, {0: [0] * 8})
    assert known.read > idle.read > 0, "a block that stays the same is not fetched again"
    assert known.issue > idle.issue, "and nothing is computed"
    unknown = predicted(name, {})
    assert unknown.microseconds is None and unknown.doubts == (
        "it depends on the values of operand 0, which are not known",
    )


@pytest.mark.parametrize(
    ("old", "new", "doubt"),
    [
        ("sadd.s32", "sfrob.s32", "what `sfrob.s32` does is not known"),
        ("dma.hbm_to_vmem", "dma.hbm_twice", "what `dma.hbm_twice` does is not known"),
        ("  0x5   :", "  0x7   :", "a schedule whose bundles are not numbered from 0 on"),
        ("{", "", "a schedule whose bundles are not numbered from 0 on"),
    ],
)
def test_what_is_not_known_has_no_number(old: str, new: str, doubt: str) -> None:
    name = "rows-v5e-0.0.50.1"
    text = (SCHEDULES / f"{name}.txt").read_text()
    assert old in text
    found = predicted(name, text=text.replace(old, new))
    assert found == Prediction(doubts=(doubt,))


@pytest.mark.slow
def test_the_matrix_unit_by_its_newer_name_is_as_busy() -> None:
    older, newer = (predicted(f"matmul-v6e-{version}").units["mxu"] for version in ("0.0.50.1", "0.0.52"))
    assert 0 < newer == pytest.approx(older, rel=0.01)


def test_a_run_has_limits() -> None:
    found = predicted("matmul-v6e-0.0.50.1", limits=Limits(steps=5000))
    assert found == Prediction(doubts=("it takes too many steps to count",))
