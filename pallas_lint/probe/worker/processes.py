"""Processes that run below this one: found by parentage, measured, and ended.

On Linux this process adopts what loses its parent below it (it is a child subreaper): a descendant stays one whatever
session or process group it moves to. Other systems have no such thing; there nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MAX_ROUNDS = 500  # of looking for what is left, at least _PAUSE seconds each
_PAUSE = 0.01


class Process(NamedTuple):
    pid: int
    parent: int
    started: int  # ticks since the system started: a pid may be used again, the two together are not
    memory: int  # bytes that are resident
    cpu: float  # seconds that it and the children that it has waited for have run
    ended: bool  # its parent has not waited for it yet


def adopt_orphans() -> bool:
    """Become the parent of each descendant whose own parent ends; False where the system has no such thing."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(sent: signal.Signals) -> None:
    """Have this process get a signal when the thread that forked it ends, where the system can."""
    _prctl(_PR_SET_PDEATHSIG, sent)


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


def descendants() -> list[Process]:
    """The processes below this one, those that have ended included; empty where the system does not list any."""
    children: dict[int, list[Process]] = defaultdict(list)
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    own = None
    for name in names:
        process = _read(int(name))
        if process is None:
            continue
        children[process.parent].append(process)
        if process.pid == os.getpid():
            own = process
    found: list[Process] = []
    waiting = [] if own is None else [own]
    while waiting:
        parent = waiting.pop()
        # Parents are older: another process may have the number of one that ended while the list was made.
        below = [each for each in children.pop(parent.pid, ()) if each.started >= parent.started]
        found += below
        waiting += below
    return found


def _read(pid: int) -> Process | None:
    """None for a process that is not there any more."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    state, parent, started, pages = fields[0], int(fields[1]), int(fields[19]), int(fields[21])
    cpu = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return Process(pid, parent, started, pages * os.sysconf("SC_PAGE_SIZE"), cpu, state in (b"Z", b"X"))


def end_descendants(spared: int | None) -> bool:
    """Kill every process below this one, also where they keep starting others; False where none can be listed.

    The status of the child `spared` is left to read.
    """
    if _read(os.getpid()) is None:
        return False
    quiet = 0
    forbidden: set[tuple[int, int]] = set()  # those of other users
    for _ in range(_MAX_ROUNDS):
        found = descendants()
        reap(found, spared)
        living = [each for each in found if not each.ended and (each.pid, each.started) not in forbidden]
        for process in living:
            if not _kill(process):
                forbidden.add((process.pid, process.started))
        # One look may miss the child of a process that ended meanwhile.
        quiet = 0 if living else quiet + 1
        if quiet == 2:
            break
        if living:
            time.sleep(_PAUSE)
    return True


def reap(found: Iterable[Process], spared: int | None) -> None:
    """Release adopted children that have ended, but not `spared`, whose status is still to be read."""
    for process in found:
        if process.ended and process.parent == os.getpid() and process.pid != spared:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _kill(process: Process) -> bool:
    """Kill a process unless another has its number by now; False where that is not allowed."""
    handle = None
    try:
        if sys.platform == "linux" and hasattr(os, "pidfd_open"):
            # From here on the handle means one process: whether it is the right one is seen below.
            with contextlib.suppress(OSError):
                handle = os.pidfd_open(process.pid)
        now = _read(process.pid)
        if now is None or (now.started, now.parent) != (process.started, process.parent):
            return True  # gone, or adopted: then the next look finds it
        if handle is not None:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True
