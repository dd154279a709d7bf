"""Run a function whose kernels send to each other: on as many virtual devices as its mesh has, kernels interpreted."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from typing import Any

from ...protocol import NotANumber, OnDevices, RunProblem
from .. import device_targets
from ..launches.launch import Launch
from . import interpret

Run = Callable[[Any], list[Any]]  # the function's results, its kernels interpreted with these parameters
_LEFT = re.compile(r"non-zero count for (\d+) .{0,200}?: (\d+)")
_MODES = ("on_wait", "eager")  # copies happen when they are waited for, or at once


def examine(launch: Launch, run: Run) -> tuple[list[RunProblem], str]:
    """What running the function shows, with copies as late and as early as can be. Raises Missing."""
    if launch.backend not in (None, "tpu"):
        raise device_targets.Missing("no interpreter runs GPU kernels on several devices")
    found: list[RunProblem] = []
    for mode in _MODES:
        params = interpret.tpu_interpreter(detect_races=True, dma_execution_mode=mode)
        if params is None:
            raise device_targets.Missing("this jax has no interpreter for several devices")
        found = _examined(run, params)
        raised = next((problem for problem in found if problem["kind"] == "raised"), None)
        if raised is not None:
            raise device_targets.Missing(f"TPU interpreter cannot run it: {interpret.first_line(raised['message'])}")
        if found:
            return found, f"TPU interpreter on several devices, dma_execution_mode {mode}"
    return found, "TPU interpreter on several devices, copies late and early"


def _examined(run: Run, params: Any) -> list[RunProblem]:
    printed = io.StringIO()
    results: list[Any] | None = None
    found: list[RunProblem] = []
    with contextlib.redirect_stdout(printed):
        try:
            results = run(params)
        except device_targets.Missing:
            raise
        except Exception as error:
            found.append(interpret.raised(error))
    interpret.reset()
    if not found:
        found += interpret.races(printed.getvalue())
    left = _LEFT.search(printed.getvalue())
    if left is not None:
        message = f"a semaphore of device {left[1]} is {left[2]} at the end of the kernel, not 0"
        problem: OnDevices = {"kind": "left-over", "message": message, "places": [], "sure": True, "trace": []}
        found.append(problem)
    if results is not None and not found:
        found += _poisoned(results, run)
    return found


def _poisoned(results: list[Any], run: Run) -> list[RunProblem]:
    """Results that are NaN because unwritten memory is filled with NaN."""
    import numpy as np

    bad = [at for at, result in enumerate(results) if not interpret.is_finite(result)]
    if not bad:
        return []
    try:
        zeroed = run(interpret.tpu_interpreter(memory="zero"))
    except Exception:
        return []
    finally:
        interpret.reset()
    found: list[RunProblem] = []
    for at in bad:
        if not interpret.is_finite(zeroed[at]):
            continue
        wrong = ~np.isfinite(results[at].astype(np.float64))
        first = [int(index) for index in np.argwhere(wrong)[0]] if results[at].ndim else []
        problem: NotANumber = {
            "kind": "nan", "operand": f"result {at}", "origin": "uninitialised", "count": int(wrong.sum()),
            "size": int(wrong.size), "first": first, "always": True, "infinite": False, "reaches": True,
        }  # fmt: skip
        found.append(problem)
    return found
