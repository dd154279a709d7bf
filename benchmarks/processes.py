"""CPU time, user and system, of processes that go on running; None where the system does not have it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

_PROCESSES = Path("/proc")


def cpu_of(process: int) -> float | None:
    """Seconds that a process itself has used, all its threads included."""
    if sys.platform != "linux":
        return None
    return time.clock_gettime((~process << 3) | 2)  # the clock that clock_getcpuclockid(3) names


def cpu_of_all(process: int) -> float | None:
    """Seconds of a process and all that it has started, those that have ended and been waited for included."""
    if not _PROCESSES.is_dir():
        return None
    parents: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for folder in _PROCESSES.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            # After the name in parentheses: state, parent, ...; utime, stime, cutime and cstime are the 14th to 17th.
            rest = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        parents.setdefault(int(rest[1]), []).append(int(folder.name))
        used[int(folder.name)] = sum(map(int, rest[11:15])) / os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, [process]
    while waiting:
        each = waiting.pop()
        total += used.get(each, 0.0)
        waiting += parents.get(each, ())
    return total
