"""Launches that one process lowers and another compiles: a compiler may end the process that calls it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ...protocol import Emit, LeftToCompile, ModulesRequest, OverBudget, StageResult
from .. import device_targets, environment
from ..budget import TimeBudget, TooLong, used
from ..launches import boundary
from ..launches.launch import Launch
from ..tasks import StageOf, problem, stage
from . import enclosing_program, interpret_time, lowering

_LOOK = 0.05  # seconds between two looks at whether an interpreted kernel has had its time
_WAITING = 4  # times the CPU time that it may use: what only waits uses none
_ENDING = 10.0  # seconds for a kernel to end that is made to


class CompileProcess:
    """Leaves lowered launches in a folder, for another process to compile; runs kernels with a deadline."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.stuck = False  # whether an earlier kernel still runs in an interpreter with one memory for all

    def leave(
        self, at: int, launch: Launch, target: device_targets.DeviceTarget, lowered: Any, over: OverBudget | None
    ) -> LeftToCompile:
        """The event that requests the compilation of a launch that may be `over` its budget. Raises Missing."""
        boundary.check(launch)
        file = os.path.join(self.folder, f"{os.getpid()}-{at}-{target.text.replace(':', '-')}.mlir")
        with open(file, "wb") as stream:
            stream.write(lowering.packed(lowered))
        ins, outs = boundary.types_of(launch)
        options = launch.record.options if target.backend == "tpu" else {}
        return {
            "event": "compile", "launch": at, "target": target.text, "file": file, "ins": ins, "outs": outs,
            "axes": launch.record.axes, "over": over, "options": options,
        }  # fmt: skip

    def within(self, budget: TimeBudget, launch: Launch, execute: Callable[[], Any]) -> Any:
        """The result of `execute`, which interprets the launch; raises TooLong where it takes longer than it may."""
        least, seconds = interpret_time.least_seconds(launch), budget.seconds()
        if least > seconds:
            raise TooLong(f"its loops take {least:,.0f} s or more; smaller shapes")
        box: list[Any] = []

        def run() -> None:
            try:
                box.append((True, execute()))
            except BaseException as error:
                box.append((False, error))

        callbacks = _Callbacks()
        wall, cpu = time.perf_counter(), time.process_time()
        with callbacks.watched():
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            while thread.is_alive() and not _is_over(seconds, wall, cpu):
                thread.join(_LOOK)
            if not box:
                callbacks.end(thread)
                self.stuck |= callbacks.used and thread.is_alive()
                raise TooLong(f"it did not finish within {seconds:g} s; smaller shapes")
        ok, value = box[0]
        if not ok:
            raise value
        return value


def _is_over(seconds: float, wall: float, cpu: float) -> bool:
    """Whether so many seconds of CPU time have gone since both clocks stood so, or none are used by what waits."""
    return used(wall, cpu) > seconds or time.perf_counter() - wall > _WAITING * seconds


class _Callbacks:
    """What jax's interpreters with a memory of their own call for each operation of a kernel; it can be made to fail.

    No thread can be ended from outside, but one that interprets ends with the first of these that raises.
    """

    def __init__(self) -> None:
        self.used = False
        self._ended = False

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Context in which interpreted kernels call these."""
        module = environment.optional("jax._src.callback")
        original = environment.found(module, "io_callback")
        if original is None:
            yield
            return

        def io_callback(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
            self.used = True
            return original(partial(self._call, function), *arguments, **named)

        module.io_callback = io_callback
        try:
            yield
        finally:
            module.io_callback = original

    def end(self, thread: threading.Thread) -> None:
        """End what the thread interprets, where it still calls something."""
        logger = logging.getLogger("jax._src.callback")  # which would show how each call failed
        before, logger.disabled = logger.disabled, True
        self._ended = True
        thread.join(_ENDING)
        logger.disabled = before

    def _call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        if self._ended:
            raise TooLong("it takes too long")
        return function(*arguments, **named)


def compile_modules(request: ModulesRequest, emit: Emit) -> None:
    """Compile what other processes have lowered: `request["modules"]` are events of `Elsewhere.leave`."""
    for module in request["modules"]:
        name = f"compile:{module['launch']}:{module['target']}"
        if name in request.get("skip", ()):
            continue
        target = device_targets.parse(module["target"])
        with open(module["file"], "rb") as stream:
            data = stream.read()
        stage(
            emit,
            name,
            partial(_compiled_elsewhere, data, module, target),
            StageOf(module["launch"], "compile", target.text),
        )


def _compiled_elsewhere(data: bytes, module: LeftToCompile, target: device_targets.DeviceTarget) -> StageResult:
    try:
        return {"figures": lowering.compiled_elsewhere(data, module, target)}
    except Exception as error:
        if target.backend != "tpu" or not enclosing_program.is_overflow(error):
            raise
        return enclosing_program.judge(module["over"] or problem(error))
