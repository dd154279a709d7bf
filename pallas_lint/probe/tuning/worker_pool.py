"""Several workers that probe at the same time, each one call after another."""

from __future__ import annotations

import queue
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, TypeVar

from pallas_lint.probe.client import Worker, WorkerError
from pallas_lint.records import define, field
from pallas_lint.run.runner import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_MAX_WORKERS = 8


@define
class WorkerPool:
    """Workers in the interpreter `python`, one for each usable core."""

    python: str
    cwd: Path
    _workers: list[Worker] = field(factory=list, init=False)
    _stopped: threading.Event = field(factory=threading.Event, init=False)

    def run(
        self,
        items: Sequence[_Item],
        probe: Callable[[Worker, _Item], _Result],
        ended: Callable[[int, _Result], None],
    ) -> bool:
        """Probe all items; `ended` is called, on this thread, with an item's index and its result as soon as it is
        known. False where it was interrupted. Raises WorkerError."""
        free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for _ in range(min(usable_cores(), len(items), _MAX_WORKERS)):
            self._workers.append(Worker(self.python, self.cwd))
            free.put(self._workers[-1])

        def one(item: _Item) -> _Result:
            if self._stopped.is_set():
                raise CancelledError
            worker = free.get()
            try:
                return probe(worker, item)
            finally:
                free.put(worker)

        pool = ThreadPoolExecutor(max(len(self._workers), 1))
        try:
            running = {pool.submit(one, item): at for at, item in enumerate(items)}
            for done in as_completed(running):
                result = done.result()
                if self._stopped.is_set():  # the last event of its worker is that it died
                    return False
                ended(running[done], result)
            return True
        except (KeyboardInterrupt, CancelledError):
            return False
        except WorkerError:
            if not self._stopped.is_set():
                raise
            return False
        finally:
            self._stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in self._workers:
                worker.stop()
            pool.shutdown()
            for worker in self._workers:
                worker.close()

    def stop(self) -> None:
        """Have `run`, on another thread, come to an end."""
        self._stopped.set()
        for worker in self._workers:
            worker.stop()
