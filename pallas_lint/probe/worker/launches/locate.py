"""Places in the user's files of an exception, a frame or a traceback of jax.

The lowering interpreters keep the equation at hand in a local `eqn`, whose source info is exact in every version from
0.4.35 to 0.12, also for code inside nested jits, of which the message shows only jax's own frames. Compilers' messages
carry MLIR locations instead.
"""

from __future__ import annotations

import functools
import linecache
import os
import re
import sys
import sysconfig
from types import FrameType, ModuleType, TracebackType
from typing import Any

from ...protocol import Place

OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep  # the probe's folder
_LOCATION = re.compile(r'"([^"\n]+\.py)":(\d+):(\d+)(?: to (\d*):(\d+))?')
_MAX_ASSERTION_LINES = 10  # lines of an assertion
_MENTION = re.compile(r" at (/[^\s:]+\.py):(\d+)")


@functools.cache
def _folders() -> tuple[str, ...]:
    import jax
    import jaxlib

    modules = [os.path.dirname(os.path.abspath(module.__file__ or "")) for module in (jax, jaxlib)]
    return (*(folder + os.sep for folder in modules), OURS, sysconfig.get_path("stdlib") + os.sep)


_PALLAS = re.compile(r"[/\\]jax[/\\](_src|experimental)[/\\](pallas|mosaic)[/\\](?!ops[/\\])")  # not its own kernels
_INSTALLED = {"site-packages", "dist-packages"}
_OTHER_TOOLS = ("/_pytest/", "/pluggy/", "/absl/", "/site-packages/pytest", "/numpy/")


_included: set[str] = set()


def include(file: str) -> None:
    """Take a file for the user's, wherever it is: who probes a kernel of jax's own reads of its lines."""
    _included.add(file)


def is_users(file: str) -> bool:
    """Whether a file is neither jax's, Python's, nor ours."""
    if file in _included:
        return True
    if file.startswith("<") or any(part in file.replace(os.sep, "/") for part in _OTHER_TOOLS):
        return False
    return not file.startswith(_folders())


def imported() -> list[str]:
    """The files of the user's own that have been imported; packages that are installed are not."""
    found = set()
    for module in list(sys.modules.values()):
        file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        if isinstance(file, str) and file.endswith(".py") and is_users(file):
            real = os.path.realpath(file)
            if not _INSTALLED & set(real.split(os.sep)):
                found.add(real)
    return sorted(found)


def stack(depth: int = 1) -> list[Place]:
    """The user's frames on the stack, the innermost first."""
    found: list[Place] = []
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            found.append(_of_frame(frame, frame.f_lasti, frame.f_lineno))
        frame = frame.f_back
    return found


def places(error: BaseException) -> list[Place]:
    """The places of an error, the most informative first."""
    by_equation: list[Place] = []
    by_traceback: list[Place] = []
    by_message: list[Place] = []
    mentioned: list[Place] = []
    primitive: str | None = None
    for each in chain(error):
        for frame, lasti, line in _frames(each.__traceback__):
            file = frame.f_code.co_filename
            if is_users(file):
                by_traceback.append(_of_frame(frame, lasti, line))
                continue
            equation = frame.f_locals.get("eqn") if "pallas" in file else None
            if equation is not None and hasattr(equation, "source_info"):
                primitive = str(equation.primitive)
                found = of_equation(equation)
                by_equation.extend(found[:1])
        by_message.extend(in_text(str(each)))
        mentioned.extend(mentions(str(each)))
    # The equations go from the outermost to the innermost: the last with a place of the user's is nearest.
    ordered = [*reversed(by_equation), *by_message, *reversed(by_traceback), *mentioned]
    for place in ordered[:1]:
        if primitive is not None and by_equation:
            place["primitive"] = primitive
    unique: list[Place] = []
    for place in ordered:
        if not any((place["file"], place["line"]) == (known["file"], known["line"]) for known in unique):
            unique.append(place)
    return unique


def of_equation(equation: Any) -> list[Place]:
    """The user's frames behind an equation of a jaxpr, the innermost first."""
    from jax._src import source_info_util

    info = equation.source_info
    for argument in (info, getattr(info, "traceback", None)):
        if argument is None:
            continue
        try:
            frames = list(source_info_util.user_frames(argument))
        except Exception:  # the argument changed from SourceInfo to Traceback in 0.6
            continue
        return [of_jax_frame(frame) for frame in frames if is_users(frame.file_name)]
    return []


def in_text(text: str) -> list[Place]:
    """The places that a compiler's message names; MLIR's columns count from 0, as jax's do."""
    found: list[Place] = []
    for match in _LOCATION.finditer(text):
        file, line, column, end_line, end_column = match.groups()
        if is_users(file):
            place: Place = {"file": file, "line": int(line), "column": int(column) + 1}
            if end_column:
                place["end_line"], place["end_column"] = int(end_line or line), int(end_column) + 1
            found.append(place)
    return found


def assertion(error: BaseException) -> str:
    """The first line of the user's own assertion that failed; empty where it is jax's, or no assertion."""
    if not isinstance(error, AssertionError):
        return ""
    frame, _, last = _frames(error.__traceback__)[-1]
    file = frame.f_code.co_filename
    lines = [linecache.getline(file, line).strip() for line in range(last, max(last - _MAX_ASSERTION_LINES, 0), -1)]
    first = next((line for line in lines if line.startswith("assert ")), "")
    return first.partition("  #")[0] if is_users(file) else ""


def in_launch(error: BaseException) -> bool:
    """Whether pallas called what failed: a kernel, an index map, a rule of its own."""
    files = (frame.f_code.co_filename for each in chain(error) for frame, _, _ in _frames(each.__traceback__))
    return any(_PALLAS.search(file) for file in files)


def in_index_map(error: BaseException) -> Place | None:
    """The index map that was being traced when the error came about, as a place; None where none was."""
    for each in chain(error):
        for frame, _, _ in _frames(each.__traceback__):
            called = type(frame.f_locals.get("self")).__name__ == "_IndexMapFunc"  # as pipelines in a kernel do
            traced = "block_mapping" in frame.f_code.co_name
            if not (called or traced) or "pallas" not in frame.f_code.co_filename:
                continue
            held = frame.f_locals.get("index_map_func") or getattr(frame.f_locals.get("self"), "index_map", None)
            code = getattr(getattr(held, "index_map", held), "__code__", None)
            if code is not None and is_users(code.co_filename):
                return {"file": code.co_filename, "line": code.co_firstlineno, "column": None}
    return None


def mentions(text: str) -> list[Place]:
    """Functions that a message names with the line of their definition: "k at file.py:12"."""
    return [
        {"file": file, "line": int(line), "column": None, "mentioned": True}
        for file, line in _MENTION.findall(text)
        if is_users(file)
    ]


def chain(error: BaseException | None) -> list[BaseException]:
    """An exception and those that it came of."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _frames(traceback: TracebackType | None) -> list[tuple[FrameType, int, int]]:
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame, traceback.tb_lasti, traceback.tb_lineno))
        traceback = traceback.tb_next
    return found


def _of_frame(frame: FrameType, lasti: int, line: int | None) -> Place:
    place: Place = {
        "file": frame.f_code.co_filename,
        "line": line or 1,
        "column": None,
        "function": frame.f_code.co_name,
    }
    positions = getattr(frame.f_code, "co_positions", None)  # Python 3.11
    if positions is not None and lasti >= 0:
        for at, (first, last, column, end_column) in enumerate(positions()):
            if at == lasti // 2:
                if first is not None and column is not None:
                    place["line"], place["column"] = first, column + 1
                    place["end_line"], place["end_column"] = last, (end_column or column) + 1
                break
    return place


def of_jax_frame(frame: Any) -> Place:
    line = getattr(frame, "start_line", None) or getattr(frame, "line_num", None) or 1
    column = getattr(frame, "start_column", None)
    end_column = getattr(frame, "end_column", None)
    # jax counts columns from 0, in bytes as Python does.
    return {
        "file": frame.file_name,
        "line": line,
        "column": None if not column and not end_column else (column or 0) + 1,
        "end_line": getattr(frame, "end_line", None) or line,
        "end_column": None if not end_column else end_column + 1,
        "function": frame.function_name,
    }
