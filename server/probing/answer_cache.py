"""Cache of probe results: the same request about the same code is not run again.

The code is all of the user's that was imported, statement by statement: what one of them does besides binding names
may matter to any other. Comments and blank lines between them do not.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.notebooks import reading
from pallas_lint.probe import stored_runs
from pallas_lint.records import define, evolve, field, frozen
from pallas_lint.syntax.outline import outline
from pallas_lint.text.digests import digest
from pallas_lint.text.source import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.server.probing.prober import ProbeRequest

    from pallas_lint.probe.results import ProbeResult
    from pallas_lint.text.source import Source

_MAX_ENTRIES = 200  # answers; the oldest are forgotten
# They depend more on the machine at that moment than on the code.
_PASSING = frozenset({"crash", "deadline", "memory-limit"})


@frozen
class _CodeDigest:
    """A file's text, and its statements by themselves, by digest."""

    text: str
    statements: str

    @classmethod
    def of(cls, source: Source) -> _CodeDigest:
        pieces = (f"{piece.text.rstrip()}\n" for piece in outline(source).pieces)
        return cls(_digest(source.text), _digest("".join(pieces)))

    def holds(self, source: Source) -> bool:
        return self.text == _digest(source.text) or self.statements == _CodeDigest.of(source).statements


@frozen
class _Answer:
    response: dict[str, Any]
    code: Mapping[Path, _CodeDigest]
    stamp: int  # of the runs that are shown of the file


@define(eq=False)
class Answers:
    """Answers by request. They belong to workers: another one may import another jax."""

    _known: dict[object, _Answer] = field(factory=dict, init=False)

    def again(self, request: ProbeRequest) -> dict[str, Any] | None:
        """The answer to the same request before, if nothing that it depends on has changed."""
        known = self._known.get(_question(request))
        if known is None or known.stamp != stored_runs.stamp(request.file):
            return None
        now = {file: _text(file, request) for file in known.code}
        if not all(source is not None and known.code[file].holds(source) for file, source in now.items()):
            return None
        return {**known.response, "message": f"{known.response['message']}; nothing has changed since"}

    def keep(self, request: ProbeRequest, result: ProbeResult, response: dict[str, Any], begun: float) -> None:
        """Remember an answer; `begun` is when it was requested. An unfinished one is not kept."""
        problems = [problem for launch in result.launches for stage in launch.stages for problem in stage.problems]
        if result.errors:
            self.forget()  # the worker may have ended
        if not result.launches or result.errors or result.trouble or any(p["kind"] in _PASSING for p in problems):
            return
        code = {}
        for file in {request.file.resolve(), *(Path(name).resolve() for name in result.files)}:
            source = _text(file, request)
            if source is None or _was_written(file, request, begun):
                return
            code[file] = _CodeDigest.of(source)
        stamp = stored_runs.stamp(request.file)
        if not stamp:
            return
        self._known.pop(_question(request), None)
        self._known[_question(request)] = _Answer(response, code, stamp)
        while len(self._known) > _MAX_ENTRIES:
            del self._known[next(iter(self._known))]

    def forget(self) -> None:
        """The workers have ended."""
        self._known.clear()


def _question(request: ProbeRequest) -> object:
    conditions = evolve(request.conditions, targets=tuple(request.conditions.targets))
    return request.python, request.root, request.file, repr(request.spec), conditions


def _text(file: Path, request: ProbeRequest) -> Source | None:
    """As the worker gets it: from the editor where it is not as on disk."""
    try:
        return _open_texts(request).get(file) or reading.read(file, str(file))
    except SourceError:
        return None


def _was_written(file: Path, request: ProbeRequest, begun: float) -> bool:
    """Whether a file was written since, so that the worker may have read what was there before; it may be none."""
    if file in _open_texts(request):
        return False
    try:
        return file.stat().st_mtime >= begun
    except OSError:
        return True


def _open_texts(request: ProbeRequest) -> dict[Path, Source]:
    return {path.resolve(): source for path, source in request.texts.items()}


def _digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))
