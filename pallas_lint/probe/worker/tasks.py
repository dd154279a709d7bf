"""Tasks that tell when they begin and how they end: whatever happens, it is known in which of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import devices
from .launches import locate
from .stages import lowering

Emit = Callable[[dict[str, Any]], None]


def problem(error: BaseException) -> dict[str, Any]:
    """An exception as data."""
    telling = error
    # Older releases wrap what a lowering rule raises into an exception that prints the kernel.
    while type(telling).__name__ in ("LoweringException", "LoweringError") and telling.__cause__ is not None:
        telling = telling.__cause__
    return {
        "kind": "raised",
        "type": type(telling).__name__,
        "message": str(telling).strip()[:8_000],
        "places": locate.places(error),
        "in_index_map": locate.in_index_map(error),
    }


def task(name: str, work: Callable[[], Any], emit: Emit) -> Any:
    """Run one task and tell its end; None where it failed."""
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


def stage(emit: Emit, name: str, work: Callable[[], dict[str, Any]], **about: Any) -> bool | None:
    """Run a stage and tell how it ended; True: well, False: it failed, None: it could not be tried."""
    emit({"event": "begin", "task": name})
    begun = time.perf_counter()
    facts: dict[str, Any]
    try:
        facts = {"ok": True, **work()}
    except devices.Missing as error:
        facts = {"ok": None, "detail": str(error)}
    except lowering.Unfinished as error:
        facts = {"ok": True, "detail": str(error)}
    except Exception as error:
        facts = {"ok": False, "problems": [problem(error)]}
    emit({"event": "end", "task": name, "seconds": time.perf_counter() - begun, **about, **facts})
    ok: bool | None = facts["ok"]
    return ok
