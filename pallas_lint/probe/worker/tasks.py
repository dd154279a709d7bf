"""Tasks with reported begin and end: when the process dies, the running task is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

from ..protocol import Emit, Raised, StageEnd, StageName, StageResult, TaskEnd
from . import device_targets
from .budget import TooLong
from .inputs.arguments import ArgumentMismatch
from .launches import locate, operations
from .launches.launch import Launch
from .stages import lowering

T = TypeVar("T")


class StageOf(NamedTuple):
    """Which launch goes through which stage."""

    launch: int
    stage: StageName
    target: str | None


def problem(error: BaseException, launch: Launch | None = None) -> Raised:
    """An exception as data; `launch`: of whose stage it is."""
    telling = error
    # Older releases wrap what a lowering rule raises into an exception that prints the kernel.
    while type(telling).__name__ in ("LoweringException", "LoweringError") and telling.__cause__ is not None:
        telling = telling.__cause__
    while getattr(telling, "exceptions", None):  # of a group, the first one has the cause
        telling = telling.exceptions[0]  # type: ignore[attr-defined]
    raised: Raised = {
        "kind": "raised",
        "type": type(telling).__name__,
        "message": (str(telling).strip() or locate.assertion(telling))[:8_000],
        "places": locate.places(error) or ([] if launch is None else operations.places(launch, error)),
        "in_index_map": locate.in_index_map(error),
        "in_launch": locate.in_launch(error),
    }
    if isinstance(error, ArgumentMismatch):
        raised["example"] = error.example
    return raised


def task(name: str, work: Callable[[], T], emit: Emit) -> T | None:
    """Run one task and emit its end; None where it failed."""
    emit({"event": "begin", "task": name})
    begun = time.perf_counter()
    try:
        result = work()
    except Exception as error:
        emit(
            {"event": "end", "task": name, "ok": False, "seconds": time.perf_counter() - begun,
             "problems": [problem(error)]}
        )  # fmt: skip
        return None
    emit({"event": "end", "task": name, "ok": True, "seconds": time.perf_counter() - begun})
    return result


def stage(
    emit: Emit,
    name: str,
    work: Callable[[], StageResult],
    of: StageOf | None = None,
    share: float | None = None,
    launch: Launch | None = None,
) -> bool | None:
    """Run a stage and emit how it ended; True: well, False: it failed, None: it could not be tried.

    `share` is the part that it may take of the time that is left.
    """
    emit({"event": "begin", "task": name} if share is None else {"event": "begin", "task": name, "share": share})
    begun = time.perf_counter()
    outcome: StageResult
    try:
        outcome = {"ok": True, **work()}
    except TooLong as error:
        outcome = {"ok": None, "detail": f"not judged: {error}", "unreached": True}
    except device_targets.Missing as error:
        outcome = {"ok": None, "detail": str(error)}
    except lowering.Unfinished as error:
        outcome = {"ok": True, "detail": str(error)}
    except Exception as error:
        outcome = {"ok": False, "problems": [problem(error, launch)]}
    about = {} if of is None else {"launch": of.launch, "stage": of.stage, "target": of.target}
    event = {"event": "end", "task": name, "seconds": time.perf_counter() - begun, **about, **outcome}
    emit(cast("StageEnd | TaskEnd", event))
    return outcome["ok"]
