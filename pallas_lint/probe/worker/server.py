"""The fork server: has jax imported and nothing more; every request runs in children that may die.

One line of JSON in is one request; lines of JSON out are its events, the last one `{"event": "done"}`. A child tells
which task it begins before it begins it. When it dies, or a task takes too long, that task is over and a fresh child
goes on with the others: a compiler that aborts costs one verdict, not the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import IO, Any

Emit = Callable[[dict[str, Any]], None]

_MOST_CHILDREN = 40  # for one request: then something is so broken that trying on tells nothing new
_KEPT_OUTPUT = 8_000  # bytes of the child's own output kept at each end
_POLL = 0.2  # seconds between looks at the child's memory


def serve() -> int:
    """Answer requests until standard input ends. Returns the exit status."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)  # whatever the user's code prints does not mix with the replies
    problem = _prepare()
    for line in requests:
        request = json.loads(line)
        if problem is not None:
            send(replies, {"event": "error", "message": problem})
        elif hasattr(os, "fork"):
            Supervisor(request, replies, _job).run()
        else:
            _job({**request, "skip": ()}, lambda event: send(replies, event))  # it dies with its worker
        send(replies, {"event": "done"})
    return 0


def _prepare() -> str | None:
    """Import jax; returns what keeps it from being imported."""
    from . import environment

    environment.set_variables()
    try:
        environment.import_jax()
    except environment.Unusable as error:
        return str(error)
    return None


def send(replies: IO[str], event: dict[str, Any]) -> None:
    replies.write(json.dumps(event) + "\n")
    replies.flush()


def _job(request: dict[str, Any], emit: Emit) -> None:
    from . import job  # it needs jax

    if "modules" in request:
        job.compile_modules(request, emit)
    else:
        job.run(request, emit)


class Supervisor:
    """One request, and the children that work on it one after the other."""

    def __init__(self, request: dict[str, Any], replies: IO[str], work: Callable[[dict[str, Any], Emit], None]) -> None:
        self.work = work
        self.request = request
        self.replies = replies
        self.deadline = time.monotonic() + float(request["timeout"])
        # One stage that hangs leaves time for the others.
        self.task_limit = max(float(request["timeout"]) / 2, 5.0)
        self.memory_limit = int(request["memory_limit"])
        self.skip: list[str] = list(request.get("skip", ()))
        self.failed: list[str] = []
        self.task: str | None = None
        self.task_begun = time.monotonic()

    def run(self) -> None:
        for _ in range(_MOST_CHILDREN):
            self.task = None
            fate = self._one_child()
            if fate is None:
                return
            send(self.replies, {"event": "died", "task": self.task, **fate})
            if self.task in (None, "load", "trace") or fate["reason"] == "deadline":
                return
            self.skip.append(self.task)

    def _one_child(self) -> dict[str, Any] | None:
        """None where the child did all it had to; else how it ended."""
        events_read, events_write = os.pipe()
        output_read, output_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(events_read)
            os.close(output_read)
            _be_child(self.work, {**self.request, "skip": self.skip, "failed": self.failed}, events_write, output_write)
        os.close(events_write)
        os.close(output_write)
        try:
            return self._watch(pid, events_read, output_read)
        finally:
            _kill(pid)
            os.close(events_read)
            os.close(output_read)

    def _watch(self, pid: int, events: int, output: int) -> dict[str, Any] | None:
        pending = b""
        said = _Output()
        finished = False
        open_ends = {events, output}
        killed: str | None = None
        while open_ends:
            left = self.deadline - time.monotonic()
            if left <= 0:
                killed = "deadline"
            elif self.task is not None and ":" in self.task and time.monotonic() - self.task_begun > self.task_limit:
                killed = "task-deadline"
            elif _resident(pid) > self.memory_limit:
                killed = "memory"
            if killed:
                break
            ready, _, _ = select.select(list(open_ends), [], [], min(left, _POLL))
            for end in ready:
                data = os.read(end, 65536)
                if not data:
                    open_ends.discard(end)
                elif end == output:
                    said.add(data)
                else:
                    pending += data
                    *lines, pending = pending.split(b"\n")
                    for line in lines:
                        finished |= self._event(json.loads(line))
            if events not in open_ends:
                break  # a process that the user's code left behind may hold the output open for ever
        if finished:
            return None
        if killed:
            _kill(pid)
        status = _wait(pid)
        return {"reason": killed or "exit", "status": status, "output": said.text()}

    def _event(self, event: dict[str, Any]) -> bool:
        """Pass on what the child says; True when it has finished."""
        kind = event["event"]
        if kind == "finished":
            return True
        if kind == "begin":
            self.task = event["task"]
        elif kind == "end":
            self.task = None
            if event["task"] not in ("load", "trace"):  # a new child has to do these again
                self.skip.append(event["task"])
                if event["ok"] is False:
                    self.failed.append(event["task"])
        if kind in ("begin", "end"):
            self.task_begun = time.monotonic()
        send(self.replies, event)
        return False


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


def _be_child(work: Callable[[dict[str, Any], Emit], None], request: dict[str, Any], events: int, output: int) -> None:
    status = 1
    try:
        os.setsid()  # so that whatever it starts can be stopped with it
        _die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="replace", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="replace", closefd=False)
        stream = os.fdopen(events, "w", encoding="utf-8", newline="\n")
        work(request, lambda event: send(stream, event))
        send(stream, {"event": "finished"})
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def _die_with_parent() -> None:
    """On Linux a child goes when the server goes, however that happens."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _wait(pid: int) -> int:
    """The exit status; negative: the signal that ended it."""
    try:
        _, status = os.waitpid(pid, 0)
    except ChildProcessError:
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(status)


def _resident(pid: int) -> int:
    """Bytes of memory that the process holds; 0 where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
