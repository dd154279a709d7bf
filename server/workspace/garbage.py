"""Looking for garbage while nobody waits."""

from __future__ import annotations

import asyncio
import gc

from pallas_lint.records import define, field

PAUSE = 1.0  # seconds without a new text


@define(eq=False)
class IdleCollector:
    """Has Python look at all objects in pauses: that takes as long as some edits, and edits need not wait for it."""

    pause: float = PAUSE
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)

    def postpone(self) -> None:
        """Something is to be done: do not look before it is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def schedule(self) -> None:
        """Look after a pause, from now."""
        self.postpone()
        self._timer = asyncio.get_running_loop().call_later(self.pause, _collect)


def _collect() -> None:
    _, young, old = gc.get_count()
    if young or old:  # else there is next to nothing new since the last look
        gc.collect()
