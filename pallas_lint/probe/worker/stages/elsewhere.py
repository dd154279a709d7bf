"""Launches that one process lowers and another compiles: a compiler may end the process that calls it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from ...protocol import Emit, LeftToCompile, ModulesRequest, Outcome
from .. import devices
from ..budget import Budget, TooLong
from ..launches import boundary
from ..launches.launch import Launch
from ..tasks import StageOf, stage
from . import lowering, work


class Elsewhere:
    """Leaves lowered launches in a folder, for another process to compile; runs kernels with a deadline."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.stuck = False  # whether an earlier kernel still runs

    def leave(self, at: int, launch: Launch, target: devices.Target, lowered: Any) -> LeftToCompile:
        """The event that asks for the compilation. Raises Missing."""
        boundary.check(launch)
        file = os.path.join(self.folder, f"{os.getpid()}-{at}-{target.text.replace(':', '-')}.mlir")
        with open(file, "wb") as stream:
            stream.write(lowering.packed(lowered))
        ins, outs = boundary.types_of(launch)
        return {
            "event": "compile", "launch": at, "target": target.text, "file": file, "ins": ins, "outs": outs,
            "axes": launch.record.axes,
        }  # fmt: skip

    def within(self, budget: Budget, launch: Launch, execute: Callable[[], Any]) -> Any:
        """The result of `execute`, which interprets the launch; raises TooLong where it takes longer than it may."""
        least, seconds = work.least_seconds(launch), budget.seconds()
        if least > seconds:
            raise TooLong(f"its loops take {least:,.0f} s or more; smaller shapes")
        box: list[Any] = []

        def run() -> None:
            try:
                box.append((True, execute()))
            except BaseException as error:
                box.append((False, error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(seconds)
        if not box:
            self.stuck = True
            raise TooLong(f"it did not come to an end within {seconds:g} s; smaller shapes")
        ok, value = box[0]
        if not ok:
            raise value
        return value


def compile_modules(request: ModulesRequest, emit: Emit) -> None:
    """Compile what other processes have lowered: `request["modules"]` are events of `Elsewhere.leave`."""
    for module in request["modules"]:
        name = f"compile:{module['launch']}:{module['target']}"
        if name in request.get("skip", ()):
            continue
        target = devices.parse(module["target"])
        with open(module["file"], "rb") as stream:
            data = stream.read()
        stage(
            emit,
            name,
            partial(_compiled_elsewhere, data, module, target),
            StageOf(module["launch"], "compile", target.text),
        )


def _compiled_elsewhere(data: bytes, module: LeftToCompile, target: devices.Target) -> Outcome:
    return {"figures": lowering.compiled_elsewhere(data, module, target)}
