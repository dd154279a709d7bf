"""Run a program and examine every launch that it makes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.client import MAIN, Worker, WorkerError, end
from pallas_lint.probe.protocol import ProtocolError, read_event
from pallas_lint.probe.results import LaunchResult, ProbeResult, collect, complete
from pallas_lint.records import frozen
from pallas_lint.text import files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pallas_lint.probe.capture_protocol import CaptureRequest
    from pallas_lint.probe.protocol import Event, ModulesRequest, RequestOptions
    from pallas_lint.probe.recorded import Recorded, Recording

RUNNER = Path(__file__).parent / "worker" / "runner.py"
HOOK = Path(__file__).parent / "worker" / "hook"

_NOT_STARTED = "not-started"  # as in worker/guard.py


@frozen
class Captured:
    """The program's exit status, what its launches came to, and what became of the record, if one is kept."""

    status: int
    results: list[ProbeResult]
    recorded: Recorded | None


def in_terminal(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program as if its user had; its output goes to standard error. Returns its exit status."""
    process = subprocess.Popen(command, env=environment, stdout=sys.stderr.fileno())
    try:
        return process.wait()
    except BaseException:
        end(process)
        raise


def run(
    command: Sequence[str],
    request: RequestOptions,
    recording: Recording | None = None,
    cwd: Path | None = None,
    execute: Callable[[Sequence[str], Mapping[str, str]], int] = in_terminal,
) -> Captured:
    """Have `execute` run `command` in the folder `cwd`, with its launches captured.

    Raises OSError where the command cannot be started, RecordError where the calls that it made cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="pallas-lint-") as folder:
        write_request(Path(folder), request, recording)
        path = os.pathsep.join(part for part in (str(HOOK), os.environ.get("PYTHONPATH", "")) if part)
        environment = {**os.environ, "PYTHONPATH": path, "PALLAS_LINT_CAPTURE": folder}
        status = execute(_guarded(_through_runner(command)), environment)
        _raise_if_not_started(Path(folder) / _NOT_STARTED, command)
        recorded = recording.finish(Path(folder), cwd or Path.cwd()) if recording is not None else None
        return Captured(status, read_results(Path(folder), float(request["timeout"])), recorded)


def _guarded(command: list[str]) -> list[str]:
    """The command under a guard, which ends whatever it leaves running; as it is where a system has no such thing."""
    # -I and -S: Python options of the program, and the capture's own hook, are not for the guard.
    return [sys.executable, "-I", "-S", str(MAIN), "--guard", *command] if sys.platform == "linux" else command


def _raise_if_not_started(note: Path, command: Sequence[str]) -> None:
    """Raise the OSError that kept the guard from starting the command, if it left one."""
    try:
        number = int(files.read(note, 16))
    except (OSError, ValueError):
        return
    raise OSError(number, os.strerror(number), command[0])


def start_here(folder: str) -> Any:
    """Start the capture in this very process, which runs the user's program: pytest's."""
    spec = importlib.util.spec_from_file_location("_pallas_lint_probe_main", MAIN)
    assert spec is not None and spec.loader is not None
    main = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(main)
    if main.PACKAGE not in sys.modules:
        main.load_package()
    return importlib.import_module(f"{main.WORKER}.capture").start(folder)


def _through_runner(command: Sequence[str]) -> list[str]:
    """The command with our runner in front of its Python program, where it is one; else as it is.

    Any other command is captured too, by the hook alone: its processes are examined as they shut down.
    """
    python, rest = _as_python(command)
    if python is None:
        return list(command)
    options = 0
    while options < len(rest) and rest[options].startswith("-") and rest[options] not in ("-m", "-c", "-"):
        options += 2 if rest[options] in ("-X", "-W") else 1
    if options >= len(rest) or rest[options] == "-":
        return list(command)
    return [python, *rest[:options], str(RUNNER), *rest[options:]]


def _as_python(command: Sequence[str]) -> tuple[str | None, list[str]]:
    """The interpreter and its arguments: of `python script.py`, of `pytest` and of other scripts that name one."""
    found = shutil.which(command[0])
    if found is None:
        raise FileNotFoundError(2, "no such command", command[0])
    if re.fullmatch(r"python[\d.]*(?:\.exe)?", Path(found).name):
        return found, list(command[1:])
    with Path(found).open("rb") as file:
        first = file.readline(512).decode("utf-8", "replace")
    match = re.fullmatch(r"#!\s*(\S*python[\d.]*)\s*", first)
    return (match[1], [found, *command[1:]]) if match else (None, [])


def write_request(folder: Path, terms: RequestOptions, recording: Recording | None) -> None:
    """Leave for the captured processes what to examine, and what to record."""
    request: CaptureRequest = {**terms, "record": recording.terms if recording is not None else None}
    (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")


def read_results(folder: Path, timeout: float) -> list[ProbeResult]:
    """What the captured processes left, a launch that several of them made once."""
    results = []
    seen: set[str] = set()
    for file in sorted(folder.glob("*.jsonl")):
        result = collect(None, _events(file), timeout)
        if result.modules:
            _compile(result, timeout)
        complete(result.launches, "not reached: the program was ended before")
        fresh = []
        for launch in sorted(result.launches, key=_order):
            facts = launch.facts
            key = json.dumps([facts["kernel"], facts["place"], facts["grid"], facts["operands"]])
            if key not in seen:
                seen.add(key)
                fresh.append(launch)
        result.launches = fresh
        results.append(result)
    return results


def _events(file: Path) -> Iterator[Event]:
    """The events that a process has sent; it may have been ended in the middle of a line."""
    try:
        lines = files.read(file).splitlines()
    except OSError as error:
        yield {"event": "error", "message": f"its output cannot be read: {error.strerror or error}"}
        return
    for line in lines:
        try:
            yield read_event(line)
        except ProtocolError as error:
            yield {"event": "error", "message": f"its output is not understood: {error}"}
            return


def _compile(result: ProbeResult, timeout: float) -> None:
    """Compile in a worker what the program's process has lowered: a compiler may crash, the program must not."""
    seconds = max(timeout, 10.0 * len(result.modules))
    request: ModulesRequest = {"modules": result.modules, "timeout": seconds, "memory_limit": 16 << 30}
    try:
        with Worker(str(result.parts["python"]), Path.cwd()) as worker:
            collect(None, worker.send(request), timeout, result)
    except WorkerError as error:
        result.errors.append(str(error))


def _order(launch: LaunchResult) -> tuple[str, int, str]:
    place = launch.place
    file, line = (place["file"], place["line"]) if place is not None else ("", 0)
    return file, line, json.dumps(launch.facts["operands"])
