"""Time budgets of stages: shares of the time left to a request, weighted by typical need."""

from __future__ import annotations

import time

from ..protocol import StageName
from . import device_targets

# How long stages take, compared with each other.
_WEIGHTS: dict[StageName, float] = {
    "grid": 1, "lower": 2, "compile": 4, "cost": 2, "verify": 2, "interpret": 4, "checks": 2, "run": 4,
}  # fmt: skip

WHOLE = 0.7  # of the time that is left, for what whole functions cost: about twice what their launches take alone


class TooLong(device_targets.Missing):
    """Running the kernel would take longer than there is time; the message is how long, and what to do."""


def shares(stages: list[StageName]) -> list[float]:
    """Which part of the time that is left when it begins each of these stages may take, one after the other."""
    weights = [_WEIGHTS[name] for name in stages]
    # Stages that come later mostly take less than they may.
    return [weight / (weight + sum(weights[at + 1 :]) / 2) for at, weight in enumerate(weights)]


class TimeBudget:
    """The seconds that are left of a request, in this process."""

    def __init__(self, seconds: float, timeout: float) -> None:
        self.timeout = timeout  # of the whole request
        self.share = 1.0  # of what is left, for the stage that runs
        self._left = seconds
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        """The seconds that the current stage may take."""
        return max(self._left - used(self._wall, self._cpu), 0.0) * self.share

    def check(self, steps: int, seconds_a_step: float) -> None:
        """Raises TooLong where so many steps take longer than the stage may."""
        needed, given = steps * seconds_a_step, self.seconds()
        if needed > given:
            enough = self.timeout * needed / max(given, 1.0) * 1.25
            raise TooLong(f"{_steps(steps, seconds_a_step)}; `--timeout {_round(enough)}` or smaller shapes")


class EachAlone(TimeBudget):
    """The same number of seconds for each stage, whatever others took."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds, seconds)

    def seconds(self) -> float:
        return self.timeout

    def check(self, steps: int, seconds_a_step: float) -> None:
        """Raises TooLong where so many steps take longer than the stage may."""
        if steps * seconds_a_step > self.timeout:
            raise TooLong(f"{_steps(steps, seconds_a_step)}; smaller shapes")


def used(wall: float, cpu: float) -> float:
    """Seconds since both clocks stood so: of CPU time, but never more than have passed."""
    return min(time.perf_counter() - wall, time.process_time() - cpu)


def _steps(count: int, seconds: float) -> str:
    milliseconds = seconds * 1000
    return f"about {count:,} steps of {milliseconds:.{0 if milliseconds >= 1 else 2}f} ms"


def _round(seconds: float) -> int:
    """Up to a number that people would write."""
    step = 10 if seconds < 600 else 100
    return int(-(-seconds // step) * step)
