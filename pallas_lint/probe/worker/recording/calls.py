"""Calls on record: of the outermost function of a launch's own file that is on the stack as the launch is bound."""

from __future__ import annotations

import ast
import functools
import gc
import json
import os
import re
import sys
import sysconfig
import threading
from collections import Counter
from types import CodeType, FrameType, FunctionType
from typing import Any

from ...capture_protocol import RecordedCall, RecordingRequest
from . import stub
from .entries import Entries, parameters, rebound
from .spelling import Speller, relative_to

_MAX_CALLS = 1000  # calls of one function in one process: a few of them are chosen in the end
_NODE = re.compile(r"(?P<file>[^:]+\.py)(?P<name>(?:::[^\[:\s]+)*)")


class CallRecorder:
    """Notes each distinct call in a file of `folder` that is this process's own."""

    def __init__(self, folder: str, recording: RecordingRequest) -> None:
        self._folder = folder
        self._stub = recording["stub"]
        self._path_of = relative_to(recording["root"])
        self._root = recording["root"]
        self._speller = Speller(self._path_of, free=recording["values"])
        self._entries = Entries(self._path_of, self._speller)
        self._running = threading.local()
        self._known: set[str] = set()
        self._counts: Counter[str] = Counter()

    def patch(self, primitive: Any) -> None:
        """Note the calls that lead to launches of this primitive."""
        launch = primitive.bind

        def bind(*operands: Any, **params: Any) -> Any:
            if getattr(self._running, "launch", False):  # jax's own calls while it runs a launch do not count
                return launch(*operands, **params)
            call = self._call(params)
            self._running.launch = True
            try:
                result = stub.zeros(params) if self._stub else launch(*operands, **params)
            finally:
                self._running.launch = False
            if call is not None:  # what fails is no call to learn from
                self._keep(call)
            return result

        primitive.bind = bind

    def _keep(self, call: RecordedCall) -> None:
        text = json.dumps(call)
        if text in self._known or self._counts[call["function"]] >= _MAX_CALLS:
            return
        self._known.add(text)
        self._counts[call["function"]] += 1
        with open(os.path.join(self._folder, f"{os.getpid()}.calls"), "a", encoding="utf-8") as file:
            file.write(text + "\n")

    def _call(self, params: dict[str, Any]) -> RecordedCall | None:
        try:
            launching = _launching(sys._getframe(2))
            if launching is None or self._path_of(launching.f_code.co_filename) is None:
                return None
            own = [frame for frame in _outward(launching) if frame.f_code.co_filename == launching.f_code.co_filename]
            for frame in reversed(own):
                call = self._spelled_call(frame)
                if call is not None and not self._fails(frame):
                    function, arguments = call
                    return {"function": function, "arguments": arguments, "on": _on(params), "seen": self._seen(frame)}
        except Exception:  # the program goes on whatever becomes of the record
            return None
        return None

    def _spelled_call(self, frame: FrameType) -> tuple[str, dict[str, str]] | None:
        """A function and what it got; None where it has no name, or no argument is known."""
        name = _qualified(frame.f_code)
        if name is None or name.startswith("<"):
            return None
        outer, inside, _ = name.partition(".<locals>")
        arguments = self._of_maker(frame, outer) if inside else self._entries.arguments(frame)
        path = self._path_of(frame.f_code.co_filename)
        return (f"{path}::{outer}", arguments) if arguments and "<" not in outer else None

    def _of_maker(self, frame: FrameType, name: str) -> dict[str, str]:
        """What the function around a closure, which has returned, got: as far as the closure keeps it."""
        maker: Any = sys.modules.get(frame.f_globals.get("__name__", ""))
        for part in name.split("."):
            maker = getattr(maker, part, None)
        while hasattr(maker, "__wrapped__"):
            maker = maker.__wrapped__
        code = getattr(maker, "__code__", None)
        if not isinstance(code, CodeType) or frame.f_code not in code.co_consts:
            return {}
        names = set(parameters(code)[0]) & set(frame.f_code.co_freevars) - rebound(code)
        got = frame.f_locals
        spelled = {each: self._speller.spelled(got[each]) for each in sorted(names) if each in got}
        return {each: text for each, text in spelled.items() if text is not None}

    # -- where it was seen -----------------------------------------------------------------------------------------

    def _seen(self, frame: FrameType) -> str:
        """The test that made the call, else the place that did."""
        files = [(each, self._path_of(each.f_code.co_filename)) for each in _outward(frame)]
        test = _NODE.match(os.environ.get("PYTEST_CURRENT_TEST", ""))
        if test is not None:
            file = test["file"]  # relative to pytest's root, which may be another
            named = (path for _, path in files if path is not None and f"/{path}".endswith(f"/{file}"))
            return f"{next(named, file)}{test['name']}"
        callers = [(each, path) for each, path in files[1:] if path is not None]
        # A wrapper that a decorator made, or a lambda, is less informative than its caller.
        telling = (each for each in callers if not re.search(r"<l(?:ocals|ambda)>", _qualified(each[0].f_code) or ""))
        return next((f"{path}:{each.f_lineno}" for each, path in (*telling, *callers)), "")

    def _fails(self, frame: FrameType) -> bool:
        """Whether the call stands where a test expects that it fails: then nothing is learnt from it."""
        return any(
            self._path_of(each.f_code.co_filename) is not None
            and any(first <= (each.f_lineno or 0) <= last for first, last in _expecting(each.f_code.co_filename))
            for each in _outward(frame)
        )


def _outward(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def _launching(frame: FrameType | None) -> FrameType | None:
    """The frame that called the result of `pallas_call`.

    None where jax evaluates a launch again that has been traced before, for vmap or a gradient: who does so is nobody's
    launcher.
    """
    while frame is not None and _is_machinery(frame.f_code.co_filename):
        if "eqn" in frame.f_code.co_varnames:
            return None
        frame = frame.f_back
    return frame


@functools.cache
def _is_machinery(file: str) -> bool:
    """Whether a file is of what lies between a launch and its launcher: of jax's inside, Python's, or ours."""
    import jax
    import jaxlib

    inside = os.path.join(os.path.dirname(os.path.abspath(jax.__file__)), "_src")
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    compiled = os.path.dirname(os.path.abspath(jaxlib.__file__))
    if file.startswith(("<", *(folder + os.sep for folder in (inside, compiled, ours)))):
        return True
    return file.startswith(sysconfig.get_path("stdlib") + os.sep) and "-packages" + os.sep not in file


@functools.cache
def _expecting(file: str) -> list[tuple[int, int]]:
    """The lines of `with pytest.raises(...)` and its like in a file, as (first, last)."""
    try:
        with open(file, "rb") as source:
            tree = ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            called = [each.context_expr.func for each in node.items if isinstance(each.context_expr, ast.Call)]
            names = [getattr(each, "attr", getattr(each, "id", "")) for each in called]
            if any(name == "raises" or name.startswith("assertRaises") for name in names):
                found.append((node.lineno, node.end_lineno or node.lineno))
    return found


_names: dict[tuple[str, CodeType], str | None] = {}  # equal code may stand in several files


def _qualified(code: CodeType) -> str | None:
    """A function's name in its file; before Python 3.11 only function objects know it."""
    qualified = getattr(code, "co_qualname", None)
    if qualified is not None:
        return str(qualified)
    key = code.co_filename, code
    if key not in _names:
        holders = [each for each in gc.get_referrers(code) if isinstance(each, FunctionType)]
        # What `functools.wraps` has named after another function is not that function.
        holders = [each for each in holders if each.__name__ == code.co_name and not hasattr(each, "__wrapped__")]
        _names[key] = next((each.__qualname__ for each in holders), None)
    return _names[key]


def _on(params: dict[str, Any]) -> str:
    """What the launch was to run on: "interpret", or a platform."""
    import jax

    config = sys.modules.get("jax._src.config")
    forced = getattr(config, "pallas_tpu_interpret_mode_context_manager", None)
    if params.get("interpret") or (forced is not None and forced.value):
        return "interpret"
    # Without a device nothing was launched: it was traced, interpreted by us, or stubbed.
    return "trace" if jax.default_backend() == "cpu" else str(jax.devices()[0].device_kind)
