"""Cache of the worker's events between runs: no function is probed again while all that its results rest on is there.

That is the question with its conditions, the interpreter, the environment variables, this version of pallas-lint, and
every file that was imported or read. Not kept are answers that rest on more, such as another program, and those that
depend more on the machine at that moment than on the code.
"""

from __future__ import annotations

import json
import os
import re
import stat
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.protocol import ProtocolError, read_event
from pallas_lint.records import define, field, fields
from pallas_lint.run.cache import tool_fingerprint
from pallas_lint.text import files
from pallas_lint.text.digests import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pallas_lint.probe.protocol import Event, FunctionRequest, RequestOptions, RestsOn
    from pallas_lint.probe.results import LaunchResult, Stage
    from pallas_lint.run.cache_folder import CacheFolder

_KIND = "events"
_LAYOUT = 1
_MAX_BYTES = 64 << 20  # bytes of a file that is read to see whether it changed
_PASSING = frozenset({"crash", "deadline", "memory-limit"})
# Of the terminal and the session; any other variable may be read by the code.
_OF_SESSIONS = re.compile(
    r"(_|PWD|OLDPWD|SHLVL|COLUMNS|LINES|COLORTERM|TERM(_\w+)?|PS1|WINDOWID|DISPLAY|WAYLAND_DISPLAY|TMUX\w*|STY"
    r"|SSH_\w+|XDG_SESSION_\w+|DBUS_\w+|VSCODE_\w+|INVOCATION_ID|JOURNAL_STREAM|NO_COLOR|FORCE_COLOR"
    r"|PYTEST_CURRENT_TEST|PYTEST_XDIST_\w+|PALLAS_LINT_CAPTURE)"
)
# Whether a file exists is checked without opening it.
_LISTINGS = frozenset(
    "exists lexists isfile isdir islink ismount is_file is_dir is_symlink is_mount stat lstat access getmtime getctime"
    " getatime getsize samefile readlink".split()
)
_IMPORTED = ("py", "pyc", "so", "pyd", "pth", "dist-info", "egg-info")
_NAMED = re.compile(r"[A-Za-z_]\w*")


def _variables() -> dict[str, str]:
    """The environment variables that code may read."""
    return {name: value for name, value in os.environ.items() if not _OF_SESSIONS.fullmatch(name)}


@define
class EventCache:
    """Answers in a cache folder, by their question. What is wrong with one is silent: the function is probed again."""

    folder: CacheFolder
    python: str
    cwd: Path

    def find(self, request: FunctionRequest) -> list[Event] | None:
        """The events that answered a request, if nothing that they rest on has changed."""
        content = self.folder.read(_KIND, self._name(request))
        if content is None:
            return None
        try:
            entry = json.loads(zlib.decompress(content))
            if entry["rests"] != json.loads(json.dumps(_state(entry["on"]))):
                return None
            return [read_event(json.dumps(event)) for event in entry["events"]]
        except (ValueError, KeyError, TypeError, OSError, zlib.error, ProtocolError, RecursionError):
            return None

    def keep(self, request: FunctionRequest, events: Sequence[Event], begun: float) -> bool:
        """Keep the events that answer a request which was made at the time `begun`; whether that could be done."""
        on = next((event for event in events if event["event"] == "rests"), None)
        if on is None or on["beyond"] is not None or not _is_whole(events):
            return False
        try:
            if _is_younger(on, begun) or any(map(_lists_files, on["read"])):
                return False
            state = _state(on)
        except OSError:
            return False
        events_of_result = [event for event in events if event["event"] != "rests"]
        self.folder.write(_KIND, self._name(request), _packed({"on": on, "rests": state, "events": events_of_result}))
        self.folder.remove_old()
        return True

    def _name(self, request: FunctionRequest) -> str:
        prefix = Path(self.python).parent.parent
        interpreter = [_stamp(self.python), _stamp(str(prefix / "pyvenv.cfg"))]
        machine = list(os.uname()) if hasattr(os, "uname") else []
        return _name_of(self.python, interpreter, machine, str(self.cwd), _variables(), request)


@define
class LaunchCache:
    """Results of launches, by their digest: one that was examined in an earlier run of tests need not be again.

    `terms`: how launches are examined.
    """

    folder: CacheFolder
    terms: RequestOptions
    _given: dict[str, str] = field(factory=_variables, init=False)  # before jax and the tests add theirs

    def find(self, digest_of: str) -> list[Event] | None:
        """The stored events of a launch."""
        content = self.folder.read(_KIND, self._name(digest_of))
        if content is None:
            return None
        try:
            return [read_event(json.dumps(event)) for event in json.loads(zlib.decompress(content))]
        except (ValueError, KeyError, TypeError, zlib.error, ProtocolError, RecursionError):
            return None

    def keep(self, launch: LaunchResult) -> None:
        """Store the events of a launch, if they would be the same again."""
        name = launch.facts.get("digest")
        events: list[Any] = [{**launch.facts, "event": "launch", "launch": 0}, *map(_ended, launch.stages)]
        if isinstance(name, str) and _is_whole(events):
            self.folder.write(_KIND, self._name(name), _packed(events))

    def _name(self, digest_of: str) -> str:
        return _name_of(self._given, self.terms, digest_of)


def _name_of(*inputs: object) -> str:
    """The name of the entry for these inputs, made by this version of pallas-lint."""
    text = json.dumps([_LAYOUT, tool_fingerprint(), *inputs], sort_keys=True)
    return digest(text.encode("utf-8", "surrogatepass"))


def _packed(content: object) -> bytes:
    return zlib.compress(json.dumps(content).encode())


def _ended(stage: Stage) -> dict[str, Any]:
    """The event of a stage that has ended."""
    verdict = {each.name: getattr(stage, each.name) for each in fields(type(stage))}
    for optional in ("states", "work", "no_work"):
        if verdict[optional] is None:
            del verdict[optional]
    task = f"{stage.stage}:0" + (f":{stage.target}" if stage.target else "")
    return {**verdict, "event": "end", "task": task, "launch": 0}


def _is_whole(events: Iterable[Event]) -> bool:
    """Whether the answer is one that would be given again."""
    launches = 0
    for event in events:
        launches += event["event"] == "launch"
        if event["event"] in ("died", "error", "compile"):
            return False
        if event["event"] != "end":
            continue
        if event.get("unreached") or any(problem["kind"] in _PASSING for problem in event.get("problems") or ()):
            return False
        if event["task"] in ("load", "trace") and not event["ok"]:
            return False
        # The compilers of GPUs are programs by themselves, which are found by their path.
        if event["task"].startswith("compile") and "tpu" not in event["task"] and event["ok"] is not None:
            return False
    return launches > 0


def _is_younger(on: RestsOn, begun: float) -> bool:
    """Whether something changed meanwhile, so that it may not be what was read."""
    places = (*on["installed"], *on["read"], *(folder for folder in on["searched"] if _is_of_packages(folder)))
    return any(status is not None and status.st_mtime >= begun for status in map(_status, places))


def _state(on: RestsOn) -> list[list[Any]]:
    """What is there now of what an answer rests on. Raises OSError."""
    return [
        [_stamp(file) for file in on["installed"]],
        [_content(file) for file in on["read"]],
        [_stamp(folder) if _is_of_packages(folder) else _modules_in(folder) for folder in on["searched"]],
    ]


def _content(file: str) -> str | None:
    """A digest of a file's content; None for one that code tried to read and that is not there. Raises OSError."""
    try:
        return digest(files.read(file, _MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_of_packages(folder: str) -> bool:
    return bool({"site-packages", "dist-packages"} & set(Path(folder).parts))


def _stamp(path: str) -> list[int] | None:
    """What changes with a file or a folder; None where there is none."""
    status = _status(path)
    return None if status is None else [status.st_mtime_ns, status.st_size, status.st_ino]


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)  # noqa: PTH116  a thousand of them
    except OSError:
        return None


def _modules_in(folder: str) -> str | None:
    """A digest of what can be imported from a folder; None where there is none."""
    status = _status(folder)
    if status is None or not stat.S_ISDIR(status.st_mode):
        return None if status is None else str(_stamp(folder))
    names = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name, _, suffix = entry.name.partition(".")
            if (suffix and suffix.rpartition(".")[2] in _IMPORTED) or (
                not suffix and name != "__pycache__" and entry.is_dir()
            ):
                names.append(entry.name)
    return digest("\0".join(sorted(names)).encode("utf-8", "surrogatepass"))


def _lists_files(path: str) -> bool:
    """Whether the text of a module checks for files without opening them. Raises OSError."""
    if not path.endswith(".py"):
        return False
    for line in files.read(path).decode("utf-8", "replace").splitlines():
        is_import = line.lstrip().startswith(("from ", "import "))
        for match in _NAMED.finditer(line):
            if match[0] in _LISTINGS and (is_import or line[: match.start()].rstrip().endswith(".")):
                return True
    return False
