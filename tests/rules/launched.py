"""Traces, lowers, compiles or interprets launches under a real jax, in a process of its own.

A launch is a module's text and a call: `matmul(f32(512, 512), bf16(512, 512), block=64)`. Operands are written as
`f32(shape)`; they become abstract values, or random numbers where the launch runs.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from tests.rules.interpreted import ENVIRONMENT, python

RUNNER = Path(__file__).with_name("launch_runner.py")


@frozen
class Job:
    """One launch. `stage` is how far it goes: trace, lowering, compile, or run (in interpret mode)."""

    name: str
    code: str
    call: str
    stage: str = "trace"
    target: str = "tpu"
    interpreter: str = "plain"
    seed: int = 0
    floats: bool = False


@frozen
class Outcome:
    """The error, or None; and what came out, as bytes and as numbers."""

    error: str | None
    outputs: tuple[tuple[str, tuple[int, ...], str], ...] = ()
    floats: tuple[tuple[float, ...], ...] = ()

    def matches(self, other: Outcome, tolerance: float) -> bool:
        """Whether all numbers agree up to rounding; NaN agrees with NaN."""
        pairs = [
            pair for one, two in zip(self.floats, other.floats, strict=True) for pair in zip(one, two, strict=True)
        ]
        scale = max((abs(value) for pair in pairs for value in pair if value == value), default=0.0)
        return all(a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(scale, 1.0) for a, b in pairs)


def outcomes(jobs: list[Job], interpreter: str | None = None, timeout: float = 900) -> dict[str, Outcome]:
    """What became of each job. A compiler that takes the process down fails that job; the rest goes on."""
    found: dict[str, Outcome] = {}
    waiting = list(jobs)
    while waiting:
        done = subprocess.run(
            [interpreter or python(), str(RUNNER)],
            input=json.dumps([asdict(job) for job in waiting]),
            capture_output=True,
            text=True,
            env={**os.environ, **ENVIRONMENT},
            timeout=timeout,
            check=False,
        )
        for line in done.stdout.splitlines():
            if line.startswith('{"name": '):  # what the code prints is no result
                result: dict[str, Any] = json.loads(line)
                found[result["name"]] = Outcome(
                    result["error"],
                    tuple((dtype, tuple(shape), data) for dtype, shape, data in result.get("outputs", ())),
                    tuple(tuple(values) for values in result.get("floats", ())),
                )
        left = [job for job in waiting if job.name not in found]
        if left and done.returncode == 0:
            raise AssertionError(done.stderr[-2000:])
        if left:
            if len(left) == len(waiting) and "Error" in done.stderr[-300:] and done.returncode == 1:
                raise AssertionError(done.stderr[-2000:])  # it never got to the first job
            found[left[0].name] = Outcome(f"the process ended with status {done.returncode}")
            left = left[1:]
        waiting = left
    return found
