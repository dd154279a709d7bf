"""The one thread that the engine works on, and whose turn it is there: the most urgent work goes first.

The engine's caches are not made for several threads. Work that takes long asks now and then whether it should
make way; it is begun again when its turn comes.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Callable

AT_ONCE = float("inf")  # the urgency of what takes no time worth speaking of, or that somebody waits for
GRACE = 0.1  # seconds that work has at least, unless what waits is to be done at once


@frozen(eq=False)
class _Work:
    urgency: Callable[[], float]
    function: Callable[[], Any]
    result: Future[Any]


@define(eq=False)
class Turns:
    """Work that waits, and the thread that does it."""

    _waiting: list[_Work] = field(factory=list, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)
    _begun: float = field(default=0.0, init=False)  # when what is being done was begun
    _thread: ThreadPoolExecutor = field(factory=lambda: ThreadPoolExecutor(1, "pallas-lint"), init=False)

    def submit(self, function: Callable[[], Any], urgency: Callable[[], float] = lambda: AT_ONCE) -> Future[Any]:
        """Have something done; its urgency is asked for when it is decided what comes next. Equals keep their order."""
        work = _Work(urgency, function, Future())
        with self._lock:
            self._waiting.append(work)
        self._thread.submit(self._next)
        return work.result

    def _next(self) -> None:
        with self._lock:
            work = max(self._waiting, key=lambda each: each.urgency())
            self._waiting.remove(work)
        if not work.result.set_running_or_notify_cancel():
            return
        self._begun = time.monotonic()
        try:
            value = work.function()
        except BaseException as error:
            work.result.set_exception(error)
        else:
            work.result.set_result(value)

    def should_yield(self, urgency: float) -> bool:
        """Whether work of this urgency, which is being done, should make way for what waits."""
        if not self._waiting:
            return False
        with self._lock:
            most = max((each.urgency() for each in self._waiting if not each.result.cancelled()), default=urgency)
        return most == AT_ONCE or (most > urgency and time.monotonic() - self._begun > GRACE)

    def end(self) -> None:
        """Begin nothing any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for work in self._waiting:
                work.result.cancel()
