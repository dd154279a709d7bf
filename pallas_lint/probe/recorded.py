"""Recording: the calls that a captured program notes, and the shapes file that takes them."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from pallas_lint.config.bounds import bounds, project_root
from pallas_lint.known_calls import shapes_file
from pallas_lint.known_calls.known_call import KnownCall, ValueProblem
from pallas_lint.known_calls.values import check
from pallas_lint.probe.capture_protocol import read_call
from pallas_lint.probe.protocol import ProtocolError
from pallas_lint.records import frozen
from pallas_lint.run.project_calls import outside_of_project
from pallas_lint.text import files
from pallas_lint.text.paths import shown_path
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pallas_lint.config.settings import Settings
    from pallas_lint.probe.capture_protocol import RecordedCall, RecordingRequest


_MAX_WAIT = 10.0  # seconds for other recordings to be written; one that stands still holds up no other
_PAUSE = 0.02
_TRIES = 20  # to write a file that other programs write at the same time


class RecordError(Exception):
    """The shapes file cannot be written; the message is one sentence."""


@frozen
class Recorded:
    """What became of a recording: a sentence, and how many calls the run noted."""

    summary: str
    calls: int


@frozen
class Recording:
    """What is recorded, and where to."""

    file: Path
    root: Path  # of the project: paths in the file are relative to it
    replace: bool = False  # drop what the file has so far
    values: bool = False
    stub: bool = False

    @classmethod
    def of(cls, cwd: Path, settings: Settings, *, replace: bool, values: bool, stub: bool) -> Recording:
        """Into the file that lint reads, or would read, in a folder's project. Raises RecordError."""
        if settings.shapes:
            file, root = settings.root / settings.shapes, settings.root
        else:
            file = shapes_file.found(cwd) or project_root(cwd) / shapes_file.NAME
            root = file.parent
        reason = outside_of_project(file, settings)
        if reason is not None:
            raise RecordError(f"{shown_path(file, cwd)}: cannot be written: {reason}")
        return cls(file, root, replace, values, stub)

    @property
    def terms(self) -> RecordingRequest:
        """The part of the request that captured processes get."""
        return {"root": str(self.root), "values": self.values, "stub": self.stub}

    def finish(self, folder: Path, cwd: Path) -> Recorded:
        """Have the file hold what the processes left in `folder`.

        Raises RecordError.
        """
        shown = self.file.relative_to(cwd).as_posix() if self.file.is_relative_to(cwd) else self.file.name
        try:
            new = list(_calls(folder))
        except OSError as error:
            raise RecordError(f"{shown}: what was noted cannot be read: {error.strerror or error}") from error
        if not new:
            return Recorded(f"{shown}: no call of this project's functions led to a launch", 0)
        try:
            kept, changed = self._update(new, shown)
        except OSError as error:
            raise RecordError(f"{shown}: cannot be written: {error.strerror or error}") from error
        calls, functions = len(kept), len({each.function for each in kept})
        summary = f"{count_of(calls, 'call')} of {count_of(functions, 'function')}"
        return Recorded(f"{shown}: {summary}{'' if changed else ', as before'}", len(new))

    def _update(self, new: list[KnownCall], shown: str) -> tuple[tuple[KnownCall, ...], bool]:
        """Write the calls; returns those that are in the file now, and whether it changed.

        Raises RecordError, OSError.
        """
        with _one_at_a_time(self.file.parent):
            for _ in range(_TRIES):
                before = shapes_file.content(self.file)
                kept = shapes_file.merged(() if before is None else self._known(before, shown), new)
                if shapes_file.replace(self.file, before, kept, bounds(self.root)):
                    return kept, before != shapes_file.render(kept).encode()
        raise RecordError(f"{shown}: not written: other programs keep changing it")

    def _known(self, before: bytes, shown: str) -> tuple[KnownCall, ...]:
        """The calls that stay in a file. Raises RecordError where it is not to be written."""
        if self.replace:
            if not shapes_file.is_ours(before):
                raise RecordError(f"{shown}: not replaced: it is not a shapes file of pallas-lint; remove it yourself")
            return ()
        known = shapes_file.decoded(before, shown)
        for problem in known.problems:
            raise RecordError(f"{shown}:{problem.line}: {problem.message}; mend it, or write it anew by replacing it")
        return known.known_calls


@contextlib.contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Context that one process at a time is in, so that no recording undoes another, where the system has locks.

    Raises OSError.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    end = time.monotonic() + _MAX_WAIT
    try:
        while time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(_PAUSE)
            except OSError:  # file systems of other machines may have none
                break
        yield
    finally:
        os.close(handle)


def _calls(folder: Path) -> Iterator[KnownCall]:
    """What was noted; a process may have been ended in the middle of a line. Raises OSError."""
    for file in sorted(folder.glob("*.calls")):
        for line in files.read(file).splitlines():
            try:
                call = read_call(line)
            except ProtocolError:
                break
            arguments = tuple((name, text) for name, text in sorted(call["arguments"].items()) if _is_value(text))
            if arguments and shapes_file.names_function(call["function"]):
                yield _known_call(call, arguments)


def _known_call(call: RecordedCall, arguments: tuple[tuple[str, str], ...]) -> KnownCall:
    return KnownCall(call["function"], arguments, call["seen"], call["on"], "file")


def _is_value(text: str) -> bool:
    """Whether the file may have it: jax has dtypes that rules do not support."""
    try:
        check(text)
    except ValueProblem:
        return False
    return True
