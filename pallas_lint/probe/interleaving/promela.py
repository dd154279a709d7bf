"""The Promela model of a kernel, for a check with spin.

A process for each line; one more completes copies, in any order. Semaphores count in the greatest unit that divides all
their amounts; accesses and copies assert that nothing is under way that they race with.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

from ..byte_sizes import format_bytes
from .events import Copy, Event, EventIndex, EventTraces, InvalidAccess, MemoryAccess, Region, Semaphore, Signal, Wait
from .system import TooLarge

FIRST_LINE = "/* A kernel on several devices, as pallas-lint models it. */"
_MAX_CHARACTERS = 4 << 20  # characters: it grows with the product of copies and accesses


def model(lines: EventTraces, title: str = "kernel") -> str:
    """The text of a model. A copy is in phase 1 while it reads, in 2 while it only writes, in 3 when it is over.

    Raises TooLarge.
    """
    parts, size = [FIRST_LINE], 0
    for part in _Model(lines).text(title):
        parts.append(part)
        size += len(part)
        if size > _MAX_CHARACTERS:
            raise TooLarge(f"it would be larger than {format_bytes(_MAX_CHARACTERS)}")
    return "\n".join(parts) + "\n"


def _commented(text: str) -> str:
    """A comment in one line: names of kernels and devices are any text, and spin compiles what stands outside."""
    plain = "".join(each if each.isprintable() else "?" for each in text)
    return f"/* {plain.replace('*/', '* /')} */"


class _Model:
    def __init__(self, lines: EventTraces) -> None:
        self.lines = lines
        self.copies: dict[EventIndex, int] = {}
        self.semaphores: dict[Semaphore, int] = {}
        amounts: dict[Semaphore, list[int]] = defaultdict(list)
        for moment, event in lines:
            if isinstance(event, Copy):
                self.copies[moment] = len(self.copies)
            for semaphore, amount in _amounts(event):
                self.semaphores.setdefault(semaphore, len(self.semaphores))
                amounts[semaphore].append(amount)
        self.units = {semaphore: math.gcd(*given) or 1 for semaphore, given in amounts.items()}

    def text(self, title: str) -> Iterator[str]:
        yield _commented(f"{title} on {', '.join(self.lines.names)}")
        for semaphore, number in self.semaphores.items():
            unit = f", in units of {self.units[semaphore]} bytes" if semaphore.kind == "dma" else ""
            yield _commented(f"semaphores[{number}]: {semaphore.shown} of {self.lines.names[semaphore.home]}{unit}")
        yield f"int semaphores[{len(self.semaphores) or 1}];"
        yield f"byte phase[{len(self.copies) or 1}];"
        yield "byte over;"
        for at, line in enumerate(self.lines.lines):
            yield f"active proctype line{at}() {{"
            for index, event in enumerate(line):
                for statement in self._statement((at, index), event):
                    where = f"line {event.place['line']}" if event.place is not None else ""
                    note = ", ".join(part for part in (where, event.step) if part)
                    yield f"  {statement}" + (f"  {_commented(note)}" if note else "")
            yield "  over++\n}"
        yield from self._engine()
        yield from self._end()

    def _statement(self, moment: EventIndex, event: Event) -> Iterator[str]:
        if isinstance(event, Wait):
            name, amount = self._amount(event.semaphore, event.amount)
            taken = f"{name} = {name} - {amount}" if event.takes else "skip"
            yield f"atomic {{ {name} >= {amount} -> {taken} }};"
        elif isinstance(event, Signal):
            name, amount = self._amount(event.semaphore, event.amount)
            yield f"{name} = {name} + {amount};"
        elif isinstance(event, MemoryAccess):
            alone = self._alone(event.region, event.writes)
            if alone:
                yield f"assert({alone});"
        elif isinstance(event, Copy):
            mine = self.copies[moment]
            ends = [(region, writes) for writes, end in enumerate((event.reads, event.writes)) for region in end]
            each = (self._alone(region, bool(writes), mine) for region, writes in ends)
            alone = " && ".join(condition for condition in each if condition)
            checked = f"assert({alone}); " if alone else ""
            yield f"d_step {{ {checked}phase[{mine}] = 1 }};"
        elif isinstance(event, InvalidAccess):
            yield "assert(false);"

    def _amount(self, semaphore: Semaphore, amount: int) -> tuple[str, int]:
        return f"semaphores[{self.semaphores[semaphore]}]", amount // self.units[semaphore]

    def _alone(self, region: Region, writes: bool, mine: int | None = None) -> str:
        """The condition that no copy is under way with which a use of a region races."""
        conditions = []
        for moment, number in self.copies.items():
            copy = self.lines.event(moment)
            assert isinstance(copy, Copy)
            if number == mine:
                continue
            if any(target.overlaps(region) for target in copy.writes):
                conditions.append(f"phase[{number}] != 1 && phase[{number}] != 2")
            elif writes and any(source.overlaps(region) for source in copy.reads):
                still = f"phase[{number}] != 1"
                conditions.append(still if copy.sent is not None else f"{still} && phase[{number}] != 2")
        return " && ".join(conditions)

    def _engine(self) -> Iterator[str]:
        yield "active proctype copies() {\nend:\n  do"
        for moment, number in self.copies.items():
            copy = self.lines.event(moment)
            assert isinstance(copy, Copy)
            sent = ""
            if copy.sent is not None:
                name, amount = self._amount(copy.sent, copy.size)
                sent = f"; {name} = {name} + {amount}"
            yield f"  :: d_step {{ phase[{number}] == 1 -> phase[{number}] = 2{sent} }}"
            name, amount = self._amount(copy.received, copy.size)
            yield f"  :: d_step {{ phase[{number}] == 2 -> phase[{number}] = 3; {name} = {name} + {amount} }}"
        if not self.copies:
            yield "  :: false"
        yield "  od\n}"

    def _end(self) -> Iterator[str]:
        done = [f"over == {len(self.lines.lines)}"]
        done += [f"phase[{number}] != 1 && phase[{number}] != 2" for number in self.copies.values()]
        empty = " && ".join(f"semaphores[{number}] == 0" for number in self.semaphores.values()) or "true"
        yield "active proctype at_the_end() {\nend:"
        yield f"  {' && '.join(done)} ->\n  assert({empty})\n}}"


def _amounts(event: Event) -> Iterator[tuple[Semaphore, int]]:
    if isinstance(event, Signal | Wait):
        yield event.semaphore, event.amount
    elif isinstance(event, Copy):
        yield event.received, event.size
        if event.sent is not None:
            yield event.sent, event.size
