"""Priority queue for analysis jobs on the engine's threads; nothing waits long for a hostile document.

The engine's caches are not made for several threads: each thread has its own. Work that takes long checks now and then
whether it should make way; it is begun again when its turn comes. Work that does not check, or takes far too long, goes
on in a thread of its own, one at a time, while a new thread does the rest; past a limit of CPU time it is given up.
Once both are idle, the thread that did it takes the place of the new one: its caches are those of the large document.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from pallas_lint.records import Factory, define, field, frozen

AT_ONCE = float("inf")  # the urgency of work that takes next to no time, or that a request waits for
GRACE = 0.1  # seconds that work has at least, unless what waits is to be done at once

# Seconds of CPU time: they mean the same on a busy machine.
_MAX_WAIT = 0.1  # for work that does not make way for what is more urgent
_TURN = 1.0  # for any work, while other work waits
_LONG = 3.0  # for any work: requests about its document are no longer kept waiting
_LIMIT = 30.0  # for any work

_LOOK = 0.02  # seconds between two looks at what is being done


class TookTooLongError(Exception):
    """The work was given up at the limit of CPU time."""


class _Interrupted(BaseException):
    """Raised in a thread whose work is given up, or begun again in another one."""


@frozen(eq=False)
class Movable:
    """What may hold up others: it can go on, or begin again, in another thread."""

    moved: Callable[[], object] = lambda: None  # called once it has gone to the slow thread
    is_wanted: Callable[[], bool] = lambda: True


@frozen(eq=False)
class _Work:
    urgency: Callable[[], float]
    function: Callable[[], Any]
    movable: Movable | None
    result: Future[Any] = field(factory=Future)
    submitted: float = field(factory=time.monotonic)


@define(eq=False)
class _Worker:
    """A thread, and what it does at the moment."""

    thread: threading.Thread | None = None
    work: _Work | None = None
    begun: float = 0.0  # the time
    clock: Callable[[], float] = time.monotonic  # of its CPU time, where the system has one for each thread
    clock_begun: float = 0.0

    @property
    def spent(self) -> float:
        return self.clock() - self.clock_begun

    def begin(self, work: _Work) -> None:
        if hasattr(time, "pthread_getcpuclockid"):
            number = time.pthread_getcpuclockid(threading.get_ident())
            self.clock = lambda: time.clock_gettime(number)
        self.work, self.begun, self.clock_begun = work, time.monotonic(), self.clock()

    def interrupt(self) -> None:
        """Have an exception raised in the thread before its next step in Python; its result counts no more."""
        import ctypes

        assert self.thread is not None
        self.work = None
        number = ctypes.c_ulong(self.thread.ident or 0)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(_Interrupted))


@define(eq=False)
class EngineQueue:
    """Work that waits, and the threads that do it."""

    limit: float = _LIMIT
    _waiting: list[_Work] = field(factory=list, init=False)
    _parked: deque[_Work] = field(factory=deque, init=False)  # waits for the slow thread
    # A thread that is interrupted as it enters a condition leaves it locked for good: threads enter its lock.
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _changed: threading.Condition = field(
        default=Factory(lambda self: threading.Condition(self._lock), takes_self=True), init=False
    )
    _quick: _Worker | None = field(default=None, init=False)
    _slow: _Worker | None = field(default=None, init=False)
    _watching: bool = field(default=False, init=False)
    _ended: bool = field(default=False, init=False)

    def submit(
        self,
        function: Callable[[], Any],
        urgency: Callable[[], float] = lambda: AT_ONCE,
        movable: Movable | None = None,
    ) -> Future[Any]:
        """Queue work; its urgency is evaluated when the next work is chosen. Equals keep their order.

        The future of what is movable may raise TookTooLongError.
        """
        work = _Work(urgency, function, movable)
        with self._lock:
            if self._ended:
                work.result.cancel()
                return work.result
            self._waiting.append(work)
            self._quick = self._quick or self._started()
            if movable is not None and not self._watching:
                self._watching = True
                threading.Thread(target=self._watch, name="pallas-lint-watch", daemon=True).start()
            self._changed.notify_all()
        return work.result

    def should_yield(self, urgency: float) -> bool:
        """Whether work of this urgency, which is being done, should make way; never in the slow thread."""
        if not self._waiting:
            return False
        with self._lock:
            if self._slow is not None and self._slow.thread is threading.current_thread():
                return False
            most = max((each.urgency() for each in self._waiting if not each.result.cancelled()), default=urgency)
            begun = self._quick.begun if self._quick is not None else 0.0
            return most == AT_ONCE or (most > urgency and time.monotonic() - begun > GRACE)

    def end(self) -> None:
        """Begin nothing any more, and give up what is being done."""
        with self._lock:
            self._ended = True
            for work in (*self._waiting, *self._parked):
                work.result.cancel()
            for worker in (self._quick, self._slow):
                if worker is not None and worker.work is not None and worker.work.movable is not None:
                    worker.interrupt()
            self._changed.notify_all()

    # -- in the threads --------------------------------------------------------------------------------------------

    def _started(self) -> _Worker:
        worker = _Worker()
        worker.thread = threading.Thread(target=self._serve, args=(worker,), name="pallas-lint", daemon=True)
        worker.thread.start()
        return worker

    def _serve(self, worker: _Worker) -> None:
        with suppress(_Interrupted):
            while (work := self._next(worker)) is not None:
                try:
                    value = work.function()
                except _Interrupted:
                    raise
                except BaseException as error:
                    if self._is_done(worker):
                        work.result.set_exception(error)
                else:
                    if self._is_done(worker):
                        work.result.set_result(value)

    def _is_done(self, worker: _Worker) -> bool:
        """Whether the result of a worker counts: it was not given up meanwhile."""
        with self._lock:
            counts, worker.work = worker.work is not None, None
            return counts

    def _next(self, worker: _Worker) -> _Work | None:
        """What the worker does next; waits for it. None: it is needed no more."""
        with self._lock:
            while not self._ended and worker in (self._quick, self._slow):
                work = self._from_parked() if worker is self._slow else self._from_waiting()
                if work is not None:
                    worker.begin(work)
                    self._changed.notify_all()
                    return work
                if not self._has_handed_over():
                    self._changed.wait()
            return None

    def _has_handed_over(self) -> bool:
        """Whether both threads were idle, so that the slow one, which has the larger caches, is the quick one now."""
        quick, slow = self._quick, self._slow
        if quick is None or slow is None or quick.work is not None or slow.work is not None:
            return False
        self._quick, self._slow = slow, None
        self._changed.notify_all()
        return True

    def _from_waiting(self) -> _Work | None:
        while self._waiting:
            work = max(self._waiting, key=lambda each: each.urgency())
            self._waiting.remove(work)
            if work.result.set_running_or_notify_cancel():
                return work
        return None

    def _from_parked(self) -> _Work | None:
        while self._parked:
            work = self._parked.popleft()
            if work.movable is None or work.movable.is_wanted():
                return work
            work.result.set_result(None)
        return None

    # -- watching over them ----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        with self._lock:
            while not self._ended:
                self._give_up_slow()
                self._move_quick()
                if self._slow is None and self._parked:
                    self._slow = self._started()
                busy = any(each is not None and each.work is not None for each in (self._quick, self._slow))
                self._changed.wait(_LOOK if busy else None)

    def _give_up_slow(self) -> None:
        """End the slow thread where its work is no longer needed, or at the limit."""
        slow = self._slow
        if slow is None or slow.work is None or slow.work.movable is None:
            return
        work, is_wanted = slow.work, slow.work.movable.is_wanted()
        if is_wanted and slow.spent < self.limit:
            return
        slow.interrupt()
        self._slow = None
        if is_wanted:
            work.result.set_exception(TookTooLongError())
        else:
            work.result.set_result(None)

    def _move_quick(self) -> None:
        """Where work holds up others, let it go on as slow work, and have a new thread do the others."""
        quick = self._quick
        if quick is None or quick.work is None or quick.work.movable is None or not self._holds_up(quick, quick.work):
            return
        quick.work.movable.moved()
        if self._slow is None or self._slow.work is None:
            self._slow = quick
        else:
            self._parked.append(quick.work)
            quick.interrupt()
        self._quick = self._started()

    def _holds_up(self, worker: _Worker, work: _Work) -> bool:
        spent = worker.spent
        if spent > _LONG:
            return True
        waiting = [each for each in self._waiting if not each.result.cancelled()]
        if not waiting or spent <= GRACE + _MAX_WAIT:
            return False
        late = time.monotonic() - _MAX_WAIT
        mine = work.urgency()
        return spent > _TURN or any(each.submitted < late and each.urgency() > mine for each in waiting)
