"""The fork server: has jax imported and nothing more; every request runs in children that may die.

One line of JSON in is one request; lines of JSON out are its events, the last one `{"event": "done"}`. A child reports
which task it begins before it begins it. When it dies, or a task takes too long, that task is over and a fresh child
goes on with the others: a compiler that aborts costs one verdict, not the run.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import IO, Literal

from ..protocol import Emit, Event, Fate, ProtocolError, Request, read_event, read_request
from . import processes

Limit = Literal["deadline", "task-deadline", "waiting", "memory", "processes"]
Work = Callable[[Request, Emit], None]

_MAX_CHILDREN = 40  # for one request: then further attempts would not help
_KEPT_OUTPUT = 8_000  # bytes of the child's own output kept at each end
_RUNNING = 0.1  # of the time that passes: processes that get less of a CPU wait for something else
_POLL = 0.2  # seconds between looks at the child's memory
_MIN_SECONDS = 5.0  # seconds for a stage, whatever its share
_SLOW = frozenset({"deadline", "task-deadline", "waiting"})
_MAX_PROCESSES = 128  # of one child


def serve() -> int:
    """Answer requests until standard input ends. Returns the exit status."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)  # whatever the user's code prints does not mix with the replies
    processes.adopt_orphans()
    problem = _prepare()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides what an interrupt ends
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # and the child goes on the way out
    for line in requests:
        try:
            request = read_request(line)
        except ProtocolError as error:
            send(replies, {"event": "error", "message": str(error)})
            send(replies, {"event": "done"})
            continue
        if problem is not None:
            send(replies, {"event": "error", "message": problem})
        elif hasattr(os, "fork") and "alone" not in request:
            Supervisor(request, replies, _job).run()
        else:
            request["skip"] = []
            if "watched" in request:
                request["watched"] = False  # this process goes on, and what watches it cannot be taken away
            _job(request, lambda event: send(replies, event))  # it dies with its worker
        send(replies, {"event": "done"})
    return 0


def _prepare() -> str | None:
    """Import jax; returns what keeps it from being imported."""
    from . import environment

    environment.set_variables()
    gc.disable()  # it would go through the thousands of functions that are being imported, again and again
    try:
        environment.import_jax()
    except environment.Unusable as error:
        return str(error)
    finally:
        gc.freeze()  # nor do the children look at what stays anyway
        gc.enable()
    return None


def send(replies: IO[str], event: Event) -> None:
    replies.write(json.dumps(event) + "\n")
    replies.flush()


def _job(request: Request, emit: Emit) -> None:
    from . import job  # they need jax
    from .stages import compile_process  # they need jax

    if "modules" in request:
        compile_process.compile_modules(request, emit)
    else:
        job.run(request, emit)


class Supervisor:
    """One request, and the children that work on it one after the other."""

    def __init__(self, request: Request, replies: IO[str], work: Work) -> None:
        self.work = work
        self.request = request
        self.replies = replies
        self.clock = Clock()
        self.timeout = request["timeout"]
        self.task_limit = self.timeout
        self.memory_limit = request["memory_limit"]
        self.skip: list[str] = list(request.get("skip", ()))
        self.failed: list[str] = []
        self.task: str | None = None
        self.task_clock = Clock()
        self.parent = os.getppid()
        self.writes = False  # whether libtpu is to write schedules
        self.overdue: list[str] = []  # compilations that are too slow while libtpu writes schedules

    def run(self) -> None:
        if not self.request.get("perf"):
            self._run()
            return
        with tempfile.TemporaryDirectory(prefix="pallas-lint-") as folder:
            self.request["schedules"] = folder
            self.writes = True
            self._run()

    def _run(self) -> None:
        for _ in range(_MAX_CHILDREN):
            self.task = None
            fate = self._one_child()
            if fate is None and not self.overdue:
                return
            if fate is None:
                self._leave_schedules()
                continue
            slow, task = fate["reason"] in _SLOW, self.task
            compiles = slow and task is not None and task.startswith("compile:") and ":tpu" in task
            if compiles and self.request.get("unscheduled"):
                fate["schedules"] = True  # took the rest of the time
            if task and compiles and self.writes:
                self.overdue.append(task)
            else:
                send(self.replies, {"event": "died", "task": task, **fate})
            left = self.timeout - self.clock.seconds
            # A new child loads and traces first: after a stage that took all the time, it would not get beyond that.
            if task in (None, "load", "trace") or (slow and left < _MIN_SECONDS):
                break
            self.skip.append(task)
        for task in self.overdue:
            ended: Fate = {"reason": "task-deadline", "status": None, "output": "", "schedules": True}
            send(self.replies, {"event": "died", "task": task, **ended})

    def _leave_schedules(self) -> None:
        """What is overdue is to be compiled without schedules, which takes a fraction of the time."""
        self.request["unscheduled"] = True
        self.writes = False
        self.skip = [task for task in self.skip if task not in self.overdue]
        self.overdue = []

    def _one_child(self) -> Fate | None:
        """None where the child did all it had to; else how it ended."""
        events_read, events_write = os.pipe()
        output_read, output_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(events_read)
            os.close(output_read)
            request = self.request.copy()
            request["skip"], request["failed"] = self.skip, self.failed
            request["left"] = self.timeout - self.clock.seconds
            _be_child(self.work, request, events_write, output_write)
        os.close(events_write)
        os.close(output_write)
        try:
            return self._watch(pid, events_read, output_read)
        finally:
            _kill(pid)
            os.close(events_read)
            os.close(output_read)

    def _watch(self, pid: int, events: int, output: int) -> Fate | None:
        pending = b""
        stdout = _Output()
        finished = False
        open_ends = {events, output}
        killed: Limit | None = None
        looked = 0.0
        while open_ends:
            now = time.monotonic()
            if now - looked >= _POLL:
                looked = now
                if os.getppid() != self.parent:
                    sys.exit(0)  # the reader of the answer is gone
                killed = self._over_limit(pid)
                if killed:
                    break
            ready, _, _ = select.select(list(open_ends), [], [], _POLL)
            for end in ready:
                data = os.read(end, 65536)
                if not data:
                    open_ends.discard(end)
                elif end == output:
                    stdout.add(data)
                else:
                    pending += data
                    *lines, pending = pending.split(b"\n")
                    for line in lines:
                        finished |= self._event(read_event(line))
            if events not in open_ends:
                break  # a process that the user's code left behind may hold the output open for ever
        if finished:
            return None
        if killed:
            _kill(pid)
        status = _wait(pid)
        return {"reason": killed or "exit", "status": status, "output": stdout.text()}

    def _over_limit(self, pid: int) -> Limit | None:
        """Which limit the child is over."""
        found = processes.descendants()  # of this worker: a child that left the session is one, too
        processes.reap(found, pid)
        living = [each for each in found if not each.ended]
        self.clock.advance(living)
        self.task_clock.advance(living)
        if self.clock.seconds >= self.timeout:
            return "deadline"
        if self.task is not None and ":" in self.task and self.task_clock.seconds > self.task_limit:
            return "waiting" if self.task_clock.waited > self.task_clock.seconds / 2 else "task-deadline"
        if sum(each.memory for each in living) > self.memory_limit:
            return "memory"
        return "processes" if len(living) > _MAX_PROCESSES else None

    def _event(self, event: Event) -> bool:
        """Pass on an event of the child; True when it has finished."""
        if event["event"] == "finished":
            return True
        if event["event"] == "begin":
            self.task = event["task"]
            # One stage that hangs leaves time for the others.
            self.task_limit = max((self.timeout - self.clock.seconds) * event.get("share", 0.5), _MIN_SECONDS)
        elif event["event"] == "end":
            self.task = None
            if event["task"] not in ("load", "trace"):  # a new child has to do these again
                self.skip.append(event["task"])
                if event["ok"] is False:
                    self.failed.append(event["task"])
        if event["event"] in ("begin", "end"):
            self.task_clock = Clock()
        send(self.replies, event)
        return False


class Clock:
    """Seconds of processes: of CPU time while they run, since a loaded machine lets them wait; else as time passes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waited = 0.0  # of these, without running
        self._looked = time.monotonic()
        self._cpu: float | None = None

    def advance(self, living: list[processes.Process]) -> None:
        """Add the CPU time of these processes since the last call; the wall time where none is listed."""
        now, cpu = time.monotonic(), sum(each.cpu for each in living)
        passed, self._looked = now - self._looked, now
        ran = 0.0 if self._cpu is None else cpu - self._cpu
        self._cpu = cpu
        if ran < passed * _RUNNING:
            self.seconds += passed
            self.waited += passed if living else 0.0
        else:
            self.seconds += min(ran, passed)


class _Output:
    """The beginning and the end of what a child printed, however much it was."""

    def __init__(self) -> None:
        self.first = b""
        self.last = b""

    def add(self, data: bytes) -> None:
        room = _KEPT_OUTPUT - len(self.first)
        self.first += data[:room]
        self.last = (self.last + data[room:])[-_KEPT_OUTPUT:] if len(data) > room else self.last

    def text(self) -> str:
        return (self.first + (b"\n...\n" + self.last if self.last else b"")).decode("utf-8", "replace")


def _be_child(work: Work, request: Request, events: int, output: int) -> None:
    status = 1
    try:
        os.setsid()  # away from the terminal, and a group that can be ended where descendants are not listed
        processes.die_with_parent(signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="replace", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="replace", closefd=False)
        stream = os.fdopen(events, "w", encoding="utf-8", newline="\n")
        work(request, lambda event: send(stream, event))
        send(stream, {"event": "finished"})
        status = 0
    except SystemExit as error:  # the user's own `sys.exit`
        status = error.code & 0xFF if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def _kill(pid: int) -> None:
    """End the child and whatever it started; where the system lists no processes, what is still in its group."""
    if not processes.end_descendants(pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _wait(pid: int) -> int:
    """The exit status; negative: the signal that ended it."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(status)
