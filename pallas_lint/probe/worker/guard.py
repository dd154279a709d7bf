"""The guard: a small process around the worker, or around a captured program, that ends all of its descendants.

It outlives what it guards, and ends it when the process that started it is gone, however that came about.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from . import processes

# What the probe reads where the command could not be started, in the folder of the capture.
NOT_STARTED = "not-started"
_GRACE = 2.0  # seconds for what is guarded to end by itself after SIGTERM
_POLL = 0.2  # seconds between checks that the parent of the guard is still there


def guard(work: Callable[[], int]) -> int:
    """Do `work` in a child process, and end everything below it once it is over, or once its parent is gone.

    Returns what `work` returns, in the child; the guard itself ends as the child did and does not return. Where the
    system has no way to adopt orphans, the work is done in this very process.
    """
    if not processes.adopt_orphans():
        return work()
    started_by = os.getppid()
    ending = {signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
    # An interrupt from the terminal goes to the whole group: what is guarded decides what it means.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*ending, signal.SIGINT, signal.SIGCHLD})
    child = os.fork()
    if child != 0:
        _watch(child, started_by, ending)
    processes.die_with_parent(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return work()


def _watch(child: int, started_by: int, ending: set[signal.Signals]) -> NoReturn:
    """What the guard itself does until nothing is left to guard."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take the status along
    status = None
    while status is None and os.getppid() == started_by:
        got = signal.sigtimedwait({*ending, signal.SIGCHLD}, _POLL)
        status = _status(child)
        if got is not None and got.si_signo in ending:
            break
    if status is None:
        status = _terminate(child)
    if status is None:
        os.kill(child, signal.SIGKILL)
    processes.end_descendants(child)
    if status is None:
        _, status = os.waitpid(child, 0)
    _end_like(os.waitstatus_to_exitcode(status))


def _status(child: int) -> int | None:
    """The child's status once it has ended; adopted processes that have ended are let go of."""
    pid = -1
    while pid != 0:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == child:
            return status
    return None


def _terminate(child: int) -> int | None:
    """The child's status where it ends in time after SIGTERM."""
    os.kill(child, signal.SIGTERM)
    end = time.monotonic() + _GRACE
    while (left := end - time.monotonic()) > 0:
        signal.sigtimedwait({signal.SIGCHLD}, left)
        status = _status(child)
        if status is not None:
            return status
    return None


def _end_like(status: int) -> NoReturn:
    """End this process with an exit status, or by a signal where it is negative."""
    if status < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sent = -status
        if sent not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(sent, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {sent})
        os.kill(os.getpid(), sent)
    os._exit(status & 0xFF)


def become(command: list[str]) -> NoReturn:
    """Turn this process into a program. What keeps it from starting is left in the folder of the capture."""
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what a process ignores its programs ignore
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        with open(os.path.join(os.environ["PALLAS_LINT_CAPTURE"], NOT_STARTED), "w", encoding="ascii") as file:
            file.write(str(error.errno))
        os._exit(127)
