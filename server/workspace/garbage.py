"""Garbage collection in the pauses between edits."""

from __future__ import annotations

import asyncio
import gc

from pallas_lint.records import define, field

PAUSE = 1.0  # seconds without a new text


@define(eq=False)
class IdleCollector:
    """Runs full collections in pauses: one takes as long as some edits, which need not wait for it."""

    pause: float = PAUSE
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)

    def postpone(self) -> None:
        """Work has begun: no collection before it ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def schedule(self) -> None:
        """Collect after a pause, from now."""
        self.postpone()
        self._timer = asyncio.get_running_loop().call_later(self.pause, _collect)


def _collect() -> None:
    _, young, old = gc.get_count()
    if young or old:  # else there is next to nothing new since the last collection
        gc.collect()
