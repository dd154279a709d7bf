"""The scalar unit of a TPU, its copies and its waits: runs a schedule and counts its time.

One cycle a bundle. Copies from and to HBM queue up for its bandwidth, and are done a latency after their last byte; a
wait stands still until the copies that it waits for are done.
"""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import values
from .loop_skipping import Watch
from .program import TICKS, Program, operand_address, values_of
from .state import State
from .values import UndeterminedSchedule, UnknownNumber, Words, word

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .chips import Chip, HbmTiming

_FILLED = 1 << 16  # words that a copy to scalar memory may make unknown, at most
# Copies within the core, of which little is known: a third of HBM's latency, 512 bytes a cycle.
_LOCAL_LATENCY, _LOCAL_BYTES = 0.3, 512


_REMOTE = 1 << 14  # of a flag's number: it is one of the device that the overrides name
# Of overrides: what is above that, or is computed of the core's number, only chooses a queue.
_OTHER_TARGET = (1 << 26) - 1
_MARKS = _REMOTE | 1 << 17 | 1 << 13  # beside it, of cores
_CHIP = 1  # the number of the device that is looked at: the first one may have to wait for all others
REMOTE_COPY = "copy to another device"


@dataclass
class Limits:
    """Segments that are run, at most, and seconds that this may take. `unwatched`: before loops are looked at."""

    steps: int = 20_000_000
    seconds: float = 30.0
    unwatched: int = 20_000


@dataclass
class Transfer:
    """One copy: when it was begun, when its bytes moved, and when it was done. In ticks."""

    code: str  # of the instruction
    begun: int
    moves: int
    done: int
    bytes: int


@dataclass
class Tally:
    """What is counted on the way. `runs`: of each segment; `stalls`: ticks, by the instruction that waits."""

    runs: list[int]
    stalls: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    copies: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    read: int = 0
    written: int = 0
    busy: int = 0  # ticks in which HBM moves bytes
    transfers: list[Transfer] = field(default_factory=list)  # the first ones
    waits: list[tuple[int, int]] = field(default_factory=list)  # the first ones, from and to, in ticks

    def numbers(self) -> dict[Any, int]:
        """Everything that grows, by name."""
        return {
            "read": self.read, "written": self.written, "busy": self.busy,
            **{("runs", at): count for at, count in enumerate(self.runs)},
            **{("stalls", at): count for at, count in self.stalls.items()},
            **{("copies", kind): count for kind, count in self.copies.items()},
        }  # fmt: skip

    def add(self, grown: Mapping[Any, int], times: int) -> None:
        for name, much in grown.items():
            if isinstance(name, str):
                setattr(self, name, getattr(self, name) + much * times)
            else:
                kind, at = name
                getattr(self, kind)[at] += much * times


_MAX_TRANSFERS = 200


class Machine:
    """One run of a program on one core of a chip. `given`: values of operands in scalar memory, by number."""

    def __init__(
        self, program: Program, chip: Chip, memory: HbmTiming, given: Mapping[int, Words], core: int = 0
    ) -> None:
        self.program = program
        self.given = given
        self.granule = chip.granule
        self.tick_bytes = TICKS * chip.clock / (chip.bandwidth * memory.efficiency)  # ticks a byte takes
        self.latency = round(memory.latency * chip.clock * TICKS)
        self.link_tick_bytes = TICKS * chip.clock / (chip.link * memory.links)
        self.startup = round((chip.startup if memory.startup is None else memory.startup) * chip.clock * TICKS)
        self.links: dict[str, int] = {}  # when each has moved what it was given
        self.signalled: int | None = None  # when another device was last given something; None: never
        nothing = UnknownNumber("a register that nothing was written to")
        self.state = State([nothing] * 64, [nothing] * 32, {})
        if program.core_id is not None:
            self.state.memory[program.core_id] = core
        self.state.memory |= dict.fromkeys(program.chip_ids, _CHIP)
        self.written: dict[int, Sequence[int]] = {}  # by operand, its first words; none where they are not known
        self.notes_transfers = True  # until turns are skipped: a picture of the first steps has no gaps
        self.tally = Tally([0] * len(program.segments))

    def run(self, limits: Limits, *, skipping: bool = True) -> None:
        """Run to the end. Raises UndeterminedSchedule."""
        functions = self.bound(self.state, self._begin, self._wait, self._add, self._copy, self._signal)
        segments, runs, state = len(functions), self.tally.runs, self.state
        deadline = time.monotonic() + limits.seconds
        watch = Watch(self) if skipping else None
        at = steps = 0
        while at < segments:
            runs[at] += 1
            state.time, after = functions[at](state.time)
            if watch is not None and self.signalled is None and after <= at < segments and steps > limits.unwatched:
                steps += watch.back(after)
            at = after
            steps += 1
            if steps & 0xFFF == 0 and (steps > limits.steps or time.monotonic() > deadline):
                raise UndeterminedSchedule("it takes too many steps to count")

    def bound(
        self, state: State, begin: Any, wait: Any, add: Any, copy: Any, signal: Any
    ) -> list[Callable[[int], tuple[int, int]]]:
        """The program's functions over a state."""

        def load(address: Any) -> Any:
            if isinstance(address, UnknownNumber):
                return address
            try:
                return state.memory[address]
            except KeyError:
                return UnknownNumber("a value in scalar memory that is not known")

        def fill(source: Any, target: Any, size: Any) -> None:
            self._fill(state, source, target, size)

        def drain(source: Any, target: Any, size: Any) -> None:
            self._drain(state, source, target, size)

        scope: dict[str, Any] = {**vars(values), "refuse": _refuse}
        exec(self.program.code, scope)
        functions: list[Callable[[int], tuple[int, int]]] = scope["make"](
            state.scalars, state.predicates, state.memory, load, begin, wait, add, fill, drain, copy, signal
        )
        return functions

    def _fill(self, state: State, source: Any, target: Any, size: Any) -> None:
        """A copy to scalar memory, which is there at once: nothing reads it before it waits."""
        words = int(size) * self.granule // 4
        first = int(target)
        known: Words = ()
        why = "values in scalar memory that are not known"
        for number, address in self.program.operands.items():
            begins = None if isinstance(source, UnknownNumber) else self._begins(source, number, address)
            if begins is not None:
                known = self.given.get(number, ())[begins:]
                known = known[:words] if begins else known
                why = values_of(number)
        if words > _FILLED and not known:
            raise UndeterminedSchedule(why)
        for at in range(max(words, len(known)) if known else words):
            word_there = known[at] if at < len(known) else None
            state.memory[first + at] = UnknownNumber(why) if word_there is None else word_there

    def _begins(self, source: Any, number: int, address: int) -> int | None:
        """Behind how many words of an operand a copy's source begins; None where it is of something else.

        Addresses in VMEM count granules there. Of the parts of an operand it matters only where its values are known.
        """
        granules = word(address << 4)
        if source in (address, granules):
            return 0
        if number not in self.given or not granules <= source < word(operand_address(number + 1) << 4):
            return None
        return int(source - granules) * self.granule // 4

    def _drain(self, state: State, source: Any, target: Any, size: Any) -> None:
        """A copy from scalar memory: to an operand, what it holds then is known."""
        for number, address in self.program.operands.items():
            if isinstance(target, UnknownNumber) or target not in (address, word(address << 4)):
                continue
            words = (state.memory.get(int(source) + at) for at in range(min(int(size) * self.granule // 4, _FILLED)))
            known: list[Any] = list(itertools.takewhile(lambda each: type(each) is int, words))
            skips = state is not self.state  # then turns that write something else may be left out
            self.written[number] = [] if skips or self.written.get(number) == [] else known

    def _begin(self, at: int, granules: Any, flag: Any, now: int) -> None:
        code = self.program.copies[at]
        count, size = int(granules), int(granules) * self.granule
        state, tally = self.state, self.tally
        if isinstance(flag, UnknownNumber):
            raise UndeterminedSchedule(flag.why)
        begun = now
        if "hbm" in code:
            begun = max(now, state.free)
            moving = round(size * self.tick_bytes) * code.count("hbm")  # within HBM it is read and written
            state.free = begun + moving
            done = state.free + self.latency
            tally.busy += moving
            if code.startswith("dma.hbm"):
                tally.read += size
            if code.endswith("_to_hbm"):
                tally.written += size
        else:
            done = now + round(self.latency * _LOCAL_LATENCY) + size * TICKS // _LOCAL_BYTES
        tally.copies[code] += 1
        if self.notes_transfers and len(tally.transfers) < _MAX_TRANSFERS:
            tally.transfers.append(Transfer(code, now, begun, done, size))
        state.pending.setdefault(flag, []).append((done, count))

    def _copy(self, at: int, granules: Any, flag: Any, source_flag: Any, overrides: Any, now: int) -> None:
        """A copy of the general form, here or to another device.

        All devices run the same program, and are as far as this one: while it sends, another one sends to it as much.
        """
        for each in (flag, source_flag):
            if isinstance(each, UnknownNumber) and (each is flag or flag & _REMOTE):
                raise UndeterminedSchedule(each.why)
        if not flag & _REMOTE:
            if not isinstance(overrides, UnknownNumber) and overrides & _OTHER_TARGET:
                raise UndeterminedSchedule("what `dma.general` does is not known")
            self._begin(at, granules, flag, now)
            return
        code, link = self.program.copies[at], self.program.links[at]
        count, size = int(granules), int(granules) * self.granule
        state, tally = self.state, self.tally
        begun = now
        if "hbm" in code:
            begun = max(now, state.free)
            moving = round(size * self.tick_bytes) * code.count("hbm")
            state.free = begun + moving
            tally.busy += moving
            tally.read += size if code.startswith("dma.hbm") else 0
            tally.written += size if code.endswith("_to_hbm") else 0
        begun = max(begun, self.links.get(link, 0))
        sent = self.links[link] = begun + round(size * self.link_tick_bytes)
        tally.copies[REMOTE_COPY] += 1
        if self.notes_transfers and len(tally.transfers) < _MAX_TRANSFERS:
            tally.transfers.append(Transfer(code, now, begun, sent + self.startup, size))
        self._signal(now)
        state.pending.setdefault(source_flag & ~_MARKS, []).append((sent, count))
        state.pending.setdefault(flag & ~_MARKS, []).append((sent + self.startup, count))

    def _signal(self, now: int) -> None:
        """Another device is given something, and another one gives as much to this one."""
        self.signalled = now

    def _wait(self, at: int, flag: Any, granules: Any, now: int) -> int:
        """Until a flag counts at least so much; it goes on counting that."""
        if isinstance(flag, UnknownNumber):
            raise UndeterminedSchedule(flag.why)
        wanted, done = int(granules) + self.state.overdrawn.get(flag, 0), now
        for arrives, count in self.state.pending.get(flag, ()):
            if wanted <= 0:
                break
            done = max(done, arrives)
            wanted -= count
        if wanted > 0:  # of another device, which is as far as this one
            if self.signalled is None:
                raise UndeterminedSchedule("a wait for what was not begun here: another core or device must end it")
            done = max(done, self.signalled + self.startup)
            self.state.pending.setdefault(flag, []).append((done, wanted))
        if done > now:
            self.tally.stalls[at] += done - now
            if self.notes_transfers and len(self.tally.waits) < _MAX_TRANSFERS:
                self.tally.waits.append((now, done))
        return done

    def _add(self, at: int, flag: Any, count: Any, now: int) -> None:
        """Add to what a flag counts; less than nothing takes away, as is done after each wait."""
        if isinstance(flag, UnknownNumber):
            raise UndeterminedSchedule(flag.why)
        much, overdrawn = int(count), self.state.overdrawn
        queue = self.state.pending.setdefault(flag, [])
        if much > 0:
            queue.append((now, much))
            return
        much -= overdrawn.pop(flag, 0)
        while much and queue and queue[0][0] <= now:
            arrived, there = queue[0]
            taken = min(there, -much)
            much += taken
            queue[:1] = [(arrived, there - taken)] if there > taken else []
        if much:
            overdrawn[flag] = -much


def _refuse(why: str) -> None:
    raise UndeterminedSchedule(why)
