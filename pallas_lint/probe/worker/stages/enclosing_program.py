"""Launches that run out of VMEM where they are compiled alone, compiled again within the function around them."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...byte_sizes import format_bytes
from ...protocol import OverBudget, Raised, StageResult
from ..device_targets import DeviceTarget
from ..launches import boundary
from ..launches.launch import Launch

Compile = Callable[[DeviceTarget], "Exception | None"]  # compiles the function around; returns what it is refused with
_OVERFLOW = re.compile(r"memory space vmem|Scoped allocation with size|Allocation \(size=\d+\) would exceed memory")
_RESULTS = re.compile(r"allocating on stack for %\S{1,200} = (.{1,2000}?) custom-call\(")
_SIZES = re.compile(r"\w\[([\d,]*)\]")


def is_overflow(error: BaseException) -> bool:
    """Whether a compiler ran out of VMEM."""
    return _OVERFLOW.search(str(error)) is not None


def judge(problem: OverBudget | Raised) -> StageResult:
    """The result for a launch that has this problem alone, where there is no function to compile."""
    problem["alone"] = True
    return {"ok": False, "problems": [problem]}


def judge_in(launch: Launch, target: DeviceTarget, problem: OverBudget | Raised, compile: Compile) -> StageResult:
    """The result for a launch in a function: no problem where the function compiles, since XLA keeps arrays in VMEM.

    A problem of the launch `alone` where the function fails to compile for another reason.
    """
    error = compile(target)
    if error is None:
        return {"detail": f"{_need(problem, target)}; its function compiles, and in it XLA keeps arrays in VMEM"}
    problem["alone"] = not (is_overflow(error) and _is_of(launch, str(error)))
    return {"ok": False, "problems": [problem]}


def _is_of(launch: Launch, message: str) -> bool:
    """Whether a compiler's message is about this launch, by the shapes of its results; older ones name none."""
    named = _RESULTS.search(message)
    own = [",".join(map(str, aval.shape)) for aval in boundary.results(launch)]
    return named is None or _SIZES.findall(named[1]) == own


def _need(problem: OverBudget | Raised, target: DeviceTarget) -> str:
    if problem["kind"] == "raised":
        return "alone it needs more VMEM than it may use"
    needs, gives = format_bytes(problem["bytes"]), format_bytes(problem["limit"])
    return f"alone it needs at least {needs} of VMEM, and {target.device} gives it {gives}"
