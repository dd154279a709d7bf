"""NVIDIA's compute-sanitizer, where it is installed: a launch runs once more in a process that it watches.

Its memcheck sees what no comparison does: accesses behind an array that find memory of another. Tried on an H200 with
compute-sanitizer 2025.3 and jax 0.11.2. Its racecheck is not used: it mostly ends XLA's process with the kernels that
race, and the stage `verify` judges shared memory in every order.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from ...protocol import FunctionRequest, InInterpreter, Place, Problem, StageResult
from .. import device_targets, main
from ..launches import locate

_TOOL = "compute-sanitizer"
_MAX_SECONDS = 60.0  # kernels run tens of times slower in it
_GUARD_BYTES = "4096"  # bytes that no array's own lie in, behind each: else the next array begins there
# Each array is an allocation of its own, of its own size. Others of XLA's allocators give out parts of large ones.
_ALLOCATION = {"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
_ENDED = "ERROR SUMMARY"
_DIED = "process didn't terminate successfully"
_ACCESS = re.compile(
    r"Invalid __(?P<space>\w+)__ (?P<access>read|write|atomic) of size (?P<size>\d+) bytes\n"
    r"=+ +at (?P<at>[^\n]*)\n"
    r"(?P<more>(?:=+ {4}[^\n]*\n)*)"
)
_BESIDE = re.compile(r"is ([\d,]+) bytes (after|before) the nearest allocation at \S+ of size ([\d,]+)")
_IN_FILE = re.compile(r"[0-9a-f]+ in (?P<file>.+):(?P<line>\d+)")
_BLOCK = re.compile(r"in block (\([\d,]+\))")


def beside(outcome: StageResult, request: FunctionRequest, at: int) -> StageResult:
    """What came of a launch on a GPU, and what the sanitizer sees of the one with this number."""
    tool = shutil.which(_TOOL)
    if tool is None:
        return outcome
    alone: FunctionRequest = {**request, "alone": at}
    found: list[InInterpreter] = []
    try:
        found += _accesses(_output_of(tool, alone))
        detail = f"{_TOOL} finds {'errors' if found else 'nothing'}"
    except device_targets.Missing as error:
        detail = str(error)
    problems: list[Problem] = [*outcome.get("problems", ()), *found]
    return {**outcome, "ok": outcome.get("ok", True) and not found, "problems": problems,
            "detail": f"{outcome.get('detail')}; {detail}"}  # fmt: skip


def _output_of(tool: str, request: FunctionRequest) -> str:
    """What it writes. Raises Missing."""
    with tempfile.TemporaryDirectory(prefix="pallas-lint-") as folder:
        log = os.path.join(folder, "log")
        options = ("--tool", "memcheck", "--padding", _GUARD_BYTES, "--show-backtrace", "no", "--log-file", log)
        try:
            subprocess.run(
                [tool, *options, sys.executable, main.__file__], input=json.dumps(request) + "\n", text=True,
                env={**os.environ, **_ALLOCATION}, timeout=_MAX_SECONDS, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            with open(log, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except subprocess.TimeoutExpired:
            raise device_targets.Missing(f"{_TOOL} takes more than {_MAX_SECONDS:g} s") from None
        except OSError as error:
            raise device_targets.Missing(f"{_TOOL} does not start: {error.strerror or error}") from error
    if _ENDED not in text or (_DIED in text and not _ACCESS.search(text)):
        report_lines = [line.strip("= ") for line in text.splitlines()[1:] if line.strip("= ")]
        raise device_targets.Missing(f"{_TOOL} does not get through it{': ' + report_lines[0] if report_lines else ''}")
    return text


def _accesses(text: str) -> list[InInterpreter]:
    """The first of each kind at one place: it reports each instruction of a line, and each thread."""
    found: dict[str, InInterpreter] = {}
    for access in _ACCESS.finditer(text):
        near, block = _BESIDE.search(access["more"]), _BLOCK.search(access["more"])
        where = f"{near[1]} bytes {near[2]} an array of {near[3]}" if near else "outside of every array"
        message = f"out of bounds: {access['access']} of {access['size']} bytes in {access['space']} memory, {where}"
        if block:
            message += f", first in block {block[1]}"
        places = [*_places(access)]
        found.setdefault(
            f"{access['access']} {places}",
            {"kind": "out-of-bounds", "type": access["access"], "message": message, "places": places},
        )
    return [*found.values()]


def _places(access: re.Match[str]) -> Iterator[Place]:
    """The user's file and line: the sanitizer has only the last part of a file's path."""
    place = _IN_FILE.fullmatch(access["at"].partition("+0x")[2])
    if place is not None:
        name = os.path.basename(place["file"])
        own = [path for path in locate.imported() if os.path.basename(path) == name]
        if len(own) == 1:
            yield {"file": own[0], "line": int(place["line"])}
