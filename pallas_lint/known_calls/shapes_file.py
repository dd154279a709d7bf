"""The shapes file: argument types of real calls, recorded once and committed.

Its text is deterministic: functions and calls are sorted, a call is a line, so that a change reads well in a diff.
"""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pallas_lint.finding import LintError
from pallas_lint.known_calls.choice import MAX_CALLS, choose
from pallas_lint.known_calls.known_call import KnownCall, ValueProblem
from pallas_lint.records import field, frozen
from pallas_lint.text import files, paths

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME = "pallas-lint-shapes.toml"
VERSION = 1
_MAX_BYTES = 4 << 20  # bytes: a thousand functions take a tenth
_MAX_READ = 64  # of a function: a recording has eight, files that were put together by hand a few times that
_HEAD = f"""\
# Argument types that calls really had. Written by pallas-lint; lint reads it.
version = {VERSION}
"""
_FUNCTION = re.compile(r"[^\0\n:]+\.py::[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_KEY = re.compile(r"[A-Za-z0-9_-]+")


@frozen(slots=False)
class Shapes:
    """What stands in a shapes file: the calls, the line of each function, and what is wrong with it."""

    known_calls: tuple[KnownCall, ...] = ()
    lines: dict[str, int] = field(factory=dict)
    problems: tuple[LintError, ...] = ()
    file: Path | None = None
    shown: str = ""  # its path in problems and findings
    root: Path | None = None  # the folder to which the paths in it are relative

    def path_of(self, file: Path | None) -> str | None:
        """How the file names a module; None for one that is not below its folder."""
        if file is None or self.root is None or self.root not in file.parents:
            return None
        return file.relative_to(self.root).as_posix()

    def of(self, file: Path) -> tuple[KnownCall, ...]:
        """The calls of what a module defines."""
        path = self.path_of(file)
        return self._by_path.get(path or "", ())

    @cached_property
    def _by_path(self) -> dict[str, tuple[KnownCall, ...]]:
        found: dict[str, list[KnownCall]] = {}
        for each in self.known_calls:
            found.setdefault(each.function.partition("::")[0], []).append(each)
        return {path: tuple(calls) for path, calls in found.items()}

    @property
    def gone(self) -> list[str]:
        """The functions of modules that are not there any more."""
        root = self.root
        return [] if root is None else [each for each in self.lines if not paths.exists(root / each.partition("::")[0])]


def found(folder: Path) -> Path | None:
    """The shapes file of the project that a folder belongs to: the nearest upward, not beyond the repository."""
    for place in (folder, *folder.parents):
        if paths.is_file(place / NAME):
            return place / NAME
        if paths.exists(place / ".git"):
            break
    return None


def read(file: Path, shown: str) -> Shapes:
    """The shapes in a file, none where there is no file. `shown` is its path in problems."""
    try:
        data = files.read(file, _MAX_BYTES)
    except FileNotFoundError:
        return Shapes()
    except OSError as error:
        return Shapes(problems=(LintError(shown, f"cannot read the shapes file: {error.strerror or error}"),))
    return decoded(data, shown)


def decoded(data: bytes, shown: str) -> Shapes:
    """The shapes in the bytes of a file."""
    try:
        return parse(data.decode("utf-8"), shown)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return Shapes(problems=(LintError(shown, "cannot read the shapes file: TOML must be UTF-8", line),))


def parse(text: str, shown: str) -> Shapes:
    """The shapes in a text."""
    from pallas_lint.text import toml

    text = text.replace("\r\n", "\n")
    try:
        document = toml.loads(text)
    except toml.TOMLDecodeError as error:
        message, line = toml.located(error, text)
        return _broken(shown, f"cannot read the shapes file: {message}", line)
    except (ValueError, RecursionError):
        return _broken(shown, "cannot read the shapes file: nested too deeply, or a number of too many digits", 1)
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        return _broken(shown, f"the shapes file has version {version}: this pallas-lint reads version {VERSION}", 1)
    lines = _lines_of(text)
    known_calls: list[KnownCall] = []
    problems: list[LintError] = []
    for function, table in document.items():
        if function == "version":
            continue
        line = lines.get(function, 1)
        try:
            known_calls += _calls_of(function, table)
        except ValueProblem as error:
            problems.append(LintError(shown, f"the shapes file: {error}", line))
    return Shapes(tuple(known_calls), lines, tuple(problems))


def _broken(shown: str, message: str, line: int) -> Shapes:
    return Shapes(problems=(LintError(shown, message, line),))


def _lines_of(text: str) -> dict[str, int]:
    """The line of each function's table."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        match = re.match(r"""\s*\[\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*\]""", line)
        if match:
            name = match[2] if match[1] is None else match[1].replace('\\"', '"').replace("\\\\", "\\")
            found.setdefault(name, number)
    return found


def names_function(text: str) -> bool:
    """Whether a text names a function as the file does: "src/kernels.py::function"."""
    return _FUNCTION.fullmatch(text) is not None


def _calls_of(function: str, table: Any) -> list[KnownCall]:
    """The calls of one function. Raises ValueProblem."""
    if not names_function(function):
        raise ValueProblem(f'"{function[:80]}" names no function: write "src/kernels.py::function"')
    calls = table.get("calls") if isinstance(table, dict) else None
    if not isinstance(calls, list):
        raise ValueProblem(f"{function} has no list of `calls`")
    if len(calls) > _MAX_READ:
        raise ValueProblem(f"{function} has {len(calls)} calls: at most {_MAX_READ} are read, {MAX_CALLS} are recorded")
    return [_call(function, call) for call in calls]


def _call(function: str, call: Any) -> KnownCall:
    from pallas_lint.known_calls.values import check  # and with it the engine's values

    arguments = call.get("args") if isinstance(call, dict) else None
    if not isinstance(arguments, dict) or not all(isinstance(text, str) for text in arguments.values()):
        raise ValueProblem(f'{function}: `args` of a call are texts by parameter: {{ x = "f32[8,128]" }}')
    for name, text in arguments.items():
        try:
            check(text)
        except ValueProblem as error:
            raise ValueProblem(f"{function}: {name} = {error}") from error
    on, seen = call.get("on", "trace"), call.get("seen", "")
    if not isinstance(on, str) or not isinstance(seen, str):
        raise ValueProblem(f"{function}: `on` and `seen` of a call are texts")
    return KnownCall(function, tuple(arguments.items()), seen, on, "file")


# -- writing -----------------------------------------------------------------------------------------------------------


def merged(known: Iterable[KnownCall], new: Iterable[KnownCall]) -> tuple[KnownCall, ...]:
    """What was known and what was recorded now, no more of each function than are kept."""
    return choose((*known, *new))[0]


def render(known_calls: Iterable[KnownCall]) -> str:
    """The text of a shapes file."""
    by_function: dict[str, list[KnownCall]] = {}
    for known_call in known_calls:
        by_function.setdefault(known_call.function, []).append(known_call)
    parts = [_HEAD]
    for function in sorted(by_function):
        in_order = sorted(by_function[function], key=lambda each: each.source, reverse=True)
        calls = sorted({(tuple(sorted(each.arguments)), each.on): each for each in in_order}.items())
        rows = "".join(f"  {_row(each)},\n" for _, each in calls)
        parts.append(f"\n[{_quoted(function)}]\ncalls = [\n{rows}]\n")
    return "".join(parts)


def _row(known_call: KnownCall) -> str:
    arguments = ", ".join(f"{_key(name)} = {_quoted(text)}" for name, text in sorted(known_call.arguments))
    braces = f"{{ {arguments} }}" if arguments else "{}"
    seen = f", seen = {_quoted(known_call.source)}" if known_call.source else ""
    return f"{{ args = {braces}, on = {_quoted(known_call.on)}{seen} }}"


def _key(name: str) -> str:
    return name if _KEY.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    # JSON's strings are TOML's, but for DEL, which TOML escapes, and pairs of surrogates.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def content(file: Path) -> bytes | None:
    """The bytes of a file; None where there is none. Raises OSError."""
    try:
        return files.read(file, _MAX_BYTES)
    except FileNotFoundError:
        return None


def is_ours(data: bytes) -> bool:
    """Whether the content of a file is that of a shapes file, and not of something else that has its name."""
    first = _HEAD.partition("\n")[0].encode()
    return data.partition(b"\n")[0].rstrip(b"\r") == first or not decoded(data, "").problems


def replace(file: Path, before: bytes | None, known_calls: Iterable[KnownCall], inside: Path) -> bool:
    """Have the file, which held `before`, hold these calls; False where it holds something else by now.

    `inside` as in `files.draft`. Raises OSError.
    """
    data = render(known_calls).encode()
    if data == before:
        return True
    drafted = files.draft(file, data, inside)
    try:
        if content(file) != before:
            return False
        drafted.put()
        files.remove_leftovers(drafted.folder)
    finally:
        drafted.drop()
    return True
