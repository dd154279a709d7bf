"""The predicted cost of a kernel on a chip, from its schedule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from . import use
from .calibration import CALIBRATIONS, Kind
from .chips import CHIPS, FASTEST, LIKELY, SLOWEST, HbmTiming
from .listing import Listing, Place, UnknownForm, read
from .machine import REMOTE_COPY, Limits, Machine, Tally, Transfer
from .program import TICKS, Program, translate
from .values import UndeterminedSchedule, Words

# Shares of the time. Who waits for more than this is bound by what is waited for: by HBM where it moves bytes nearly
# all the time, else by how long a copy or a step takes however small it is.
_WAITS, _BUSY = 0.2, 0.6
_IDLE = 0.05  # of the other core's time: who needs no more has nothing to do
_LINES = 12


Bound = Literal["compute", "memory", "latency", "unknown"]


@dataclass(frozen=True)
class Line:
    """A line of the kernel, with its share of the time and the unit that it uses most. `place`: None for the loop
    over the grid, its copies and waits."""

    place: Place | None
    share: float
    unit: str


@dataclass(frozen=True)
class Prediction:
    """Times in microseconds, as calibrated with published ones, cycles and bytes of one launch; of two cores that
    share it those of the slower one, and the bytes of both.

    Empty but for `doubts` where nothing can be predicted. `units`: the share of their slots that is used, over the
    whole time; `spills`: the share of stores that only save registers; `transfers` and `waits`: the first ones, in
    ticks.
    """

    microseconds: float | None = None
    low: float | None = None
    high: float | None = None
    bound: Bound = "unknown"
    issue: int = 0
    stall: int = 0
    read: int = 0
    written: int = 0
    units: Mapping[str, float] = field(default_factory=dict)
    spills: float = 0.0
    cores: int = 1  # that share it
    lines: tuple[Line, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    waits: tuple[tuple[int, int], ...] = ()
    doubts: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()  # what is not known, in what holds for a part of a range
    integers: Mapping[int, Sequence[int]] = field(
        default_factory=dict
    )  # written, by the number of an operand or result


def predict(
    schedule: str, uses: str, device: str, given: Mapping[int, Words] | None = None, limits: Limits | None = None,
    *, skipping: bool = True, kind: Kind = "kernel",
) -> Prediction:  # fmt: skip
    """What a schedule costs on a TPU generation ("v5e").

    `schedule` and `uses` are the texts of libtpu's `*-packed-bundles-post-ra.txt` and
    `*-pre-delay_hlo-static-per-bundle-utilization.txt` (which may be empty); `given` has the values of integer
    operands, flat, by the operand's number. `kind`: whose code it is.
    """
    if device not in CHIPS:
        return Prediction(doubts=(f"no figures of {device} are published of which it could be made",))
    calibration = CALIBRATIONS.get((device, kind))
    if calibration is None:
        return Prediction(doubts=(f"XLA's operations on {device} run on both of its cores, and are compiled for one",))
    chip, values, limits = CHIPS[device], dict(given or {}), limits or Limits()
    try:
        listing = read(schedule)
        program = translate(listing, values)
        table = use.read(uses, len(listing.bundles))

        def run(memory: HbmTiming) -> list[Machine]:
            """All cores, the one that takes longest first."""
            cores = range(chip.cores if program.core_id is not None else 1)
            machines = [Machine(program, chip, memory, values, core) for core in cores]
            for machine in machines:
                machine.run(limits, skipping=skipping)
            return sorted(machines, key=lambda machine: -machine.state.time)

        cores = run(LIKELY)
        likely = cores[0]
        low, high = (run(memory)[0].state.time for memory in (FASTEST, SLOWEST))
    except (UnknownForm, UndeterminedSchedule) as error:
        return Prediction(doubts=(str(error),))

    def microseconds(ticks: int, factor: float = 1.0) -> float:
        return ticks / TICKS / chip.clock / 1e3 * calibration.scale * factor

    tally, total = likely.tally, likely.state.time
    issued = sum(runs * len(segment) for runs, segment in zip(tally.runs, program.segments, strict=False))
    counts = _counts(program, tally)
    units, spills = _units(table, counts, total / TICKS * calibration.scale)
    least = min(microseconds(low), microseconds(total, calibration.low))
    most = max(microseconds(high), microseconds(total, calibration.high))
    working = sum(each.state.time > _IDLE * total for each in cores)
    return Prediction(
        microseconds(total), least, most, _bound(listing, program, tally, total),
        issued, sum(tally.stalls.values()) // TICKS, sum(each.tally.read for each in cores),
        sum(each.tally.written for each in cores), units, spills, working, _lines(listing, table, counts, tally, total),
        tuple(tally.transfers), tuple(tally.waits),
        _rough(tally),
        integers=likely.written,
    )  # fmt: skip


def in_all_cases(found: Sequence[Prediction], assumed: str) -> Prediction:
    """The first of the predictions, in the range of all: one for each case of what is assumed.

    One without a number where any has none.
    """
    lows, highs = [each.low for each in found if each.low is not None], [each.high for each in found if each.high]
    if len(found) == 1 or not len(lows) == len(highs) == len(found):
        return next((each for each in found if each.low is None), found[0])
    return replace(found[0], low=min(lows), high=max(highs), assumed=(assumed,))


def _rough(tally: Tally) -> tuple[str, ...]:
    """What is timed roughly."""
    found = []
    if REMOTE_COPY in tally.copies:
        found.append("copies to other devices are timed roughly, as if all devices were at the same place all the time")
    if any("hbm" not in code and code != REMOTE_COPY for code in tally.copies):
        found.append("copies within the core are timed roughly")
    return tuple(found)


def _counts(program: Program, tally: Tally) -> list[int]:
    """How often each bundle is issued."""
    return [runs for runs, segment in zip(tally.runs, program.segments, strict=False) for _ in segment]


def _bound(listing: Listing, program: Program, tally: Tally, total: int) -> Bound:
    """What the time goes to: "memory", "compute", or else "latency", the cost of each step itself."""
    if not total:
        return "unknown"
    busy = tally.busy >= _BUSY * total
    if sum(tally.stalls.values()) >= _WAITS * total:
        return "memory" if busy else "latency"
    computing = sum(
        runs * len(segment)
        for runs, segment in zip(tally.runs, program.segments, strict=False)
        if any(_computes(text) for at in segment for text in listing.bundles[at].instructions)
    )
    return "compute" if computing * TICKS >= _BUSY * total else "memory" if busy else "latency"


def _computes(instruction: str) -> bool:
    code = instruction.partition("=")[2].strip() if instruction.startswith("%v") else instruction
    return code.startswith("v") and not code.startswith("vsync")


def _units(table: use.UnitUse | None, counts: list[int], cycles: float) -> tuple[dict[str, float], float]:
    if table is None or not cycles:
        return {}, 0.0
    totals: dict[str, int] = defaultdict(int)
    spilled = 0
    for count, used, spills in zip(counts, table.used, table.spills, strict=False):
        if count:
            spilled += count * spills
            for unit, slots in used.items():
                totals[unit] += count * slots
    shares = {unit: totals[unit] / (slots * cycles) for unit, slots in table.slots.items()}
    return shares, spilled / totals["store"] if totals["store"] else 0.0


def _lines(
    listing: Listing, table: use.UnitUse | None, counts: list[int], tally: Tally, total: int
) -> tuple[Line, ...]:  # fmt: skip
    """The dearest lines. What is issued between two lines' instructions leads up to the second one."""
    cycles: dict[Place | None, float] = defaultdict(float)
    slots: dict[Place | None, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    places: list[Place] = []
    for at in range(len(listing.bundles) - 1, -1, -1):
        bundle = listing.bundles[at]
        if any(text.split(" ")[0].startswith(("sbr", "dma")) for text in bundle.instructions):
            places = []
        places = list(dict.fromkeys(bundle.places)) or places
        owners: list[Place | None] = [*places] or [None]
        stalled = tally.stalls.get(at, 0) / TICKS
        cycles[None] += stalled
        if stalled:
            slots[None]["wait"] += stalled
        for owner in owners:
            cycles[owner] += counts[at] / len(owners)
            for unit, used in (table.used[at] if table is not None else {}).items():
                assert table is not None
                slots[owner][unit] += counts[at] * used / table.slots[unit] / len(owners)
    dearest = sorted(cycles.items(), key=lambda item: -item[1])[:_LINES]
    return tuple(
        Line(place, much * TICKS / total, max(slots[place], key=slots[place].__getitem__, default="none"))
        for place, much in dearest
        if much
    )
