"""Recording: the calls that a captured program notes, and the shapes file that takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.config.bounds import project_root
from pallas_lint.probe.capture_protocol import read_call
from pallas_lint.probe.protocol import ProtocolError
from pallas_lint.records import frozen
from pallas_lint.run.project import bounds_of
from pallas_lint.witnesses import shapes_file
from pallas_lint.witnesses.values import check
from pallas_lint.witnesses.witness import ValueProblem, Witness

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pallas_lint.config.settings import Settings
    from pallas_lint.probe.capture_protocol import Call
    from pallas_lint.probe.capture_protocol import Recording as Terms


class RecordError(Exception):
    """The shapes file cannot be written; the message is one sentence."""


@frozen
class Recorded:
    """What became of a recording: a sentence, and how many calls the run noted."""

    told: str
    calls: int


@frozen
class Recording:
    """What is recorded, and where to."""

    file: Path
    root: Path  # of the project: paths in the file are relative to it
    replace: bool = False  # forget what the file says so far
    values: bool = False
    stub: bool = False

    @classmethod
    def of(cls, cwd: Path, settings: Settings, *, replace: bool, values: bool, stub: bool) -> Recording:
        """Into the file that lint reads, or would read, in a folder's project."""
        if settings.shapes:
            file, root = settings.root / settings.shapes, settings.root
        else:
            file = shapes_file.found(cwd) or project_root(cwd) / shapes_file.NAME
            root = file.parent
        return cls(file, root, replace, values, stub)

    @property
    def terms(self) -> Terms:
        """What the captured processes are told of it."""
        return {"root": str(self.root), "values": self.values, "stub": self.stub}

    def finish(self, folder: Path, cwd: Path) -> Recorded:
        """Have the file hold what the processes left in `folder`.

        Raises RecordError.
        """
        shown = self.file.relative_to(cwd).as_posix() if self.file.is_relative_to(cwd) else self.file.name
        new = list(_calls(folder))
        if not new:
            return Recorded(f"{shown}: no call of this project's functions led to a launch", 0)
        known = shapes_file.Shapes() if self.replace else shapes_file.read(self.file, shown)
        for problem in known.problems:
            raise RecordError(f"{shown}:{problem.line}: {problem.message}; mend it, or write it anew by replacing it")
        kept = shapes_file.merged(known.witnesses, new)
        try:
            changed = shapes_file.write(self.file, kept, bounds_of(self.file, cwd))
        except OSError as error:
            raise RecordError(f"{shown}: cannot be written: {error.strerror or error}") from error
        calls, functions = len(kept), len({each.function for each in kept})
        told = f"{calls} call{'s' * (calls != 1)} of {functions} function{'s' * (functions != 1)}"
        return Recorded(f"{shown}: {told}{'' if changed else ', as before'}", len(new))


def _calls(folder: Path) -> Iterator[Witness]:
    """What was noted; a process may have been ended in the middle of a line."""
    for file in sorted(folder.glob("*.calls")):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                call = read_call(line)
            except ProtocolError:
                break
            arguments = tuple((name, text) for name, text in sorted(call["arguments"].items()) if _is_value(text))
            if arguments and shapes_file.names_function(call["function"]):
                yield _witness(call, arguments)


def _witness(call: Call, arguments: tuple[tuple[str, str], ...]) -> Witness:
    return Witness(call["function"], arguments, call["seen"], call["on"], "file")


def _is_value(text: str) -> bool:
    """Whether the file may say so: jax has dtypes of which no rule knows."""
    try:
        check(text)
    except ValueProblem:
        return False
    return True
