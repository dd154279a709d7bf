"""Source spans of the places in the worker's events."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.finding import Finding, Position, Related, Severity, Span
from pallas_lint.probe.results import signature_of
from pallas_lint.records import define
from pallas_lint.ruleset.registry import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pallas_lint.probe.protocol import Culprit, Place
    from pallas_lint.probe.results import LaunchResult, ProbeResult

_CALLED = re.compile(r"[\w.]+(?=\()")


@define
class Places:
    """Worker places (absolute files) as spans that the user reads."""

    cwd: Path
    line: Callable[[str, int], str | None]

    def span(self, place: Place | None, otherwise: str) -> Span:
        if place is None:
            return Span(otherwise, Position(1, 1), Position(1, 2))
        shown = self.shown(place["file"])
        number = place["line"]
        column, end_line, end_column = place.get("column"), place.get("end_line"), place.get("end_column")
        text = self.line(shown, number) or ""
        if column and end_column:
            last = int(end_line or number)
            # A call of thirty lines is shown by the name of what it calls.
            called = _CALLED.match(text, column - 1) if text.isascii() else None
            if called is not None and (int(end_line or number) > number or end_column - column > 60):
                return Span(shown, Position(number, column), Position(number, called.end() + 1))
            return Span(
                shown,
                Position(number, _characters(text, column)),
                Position(last, _characters(self.line(shown, last) or "", end_column)),
            )
        if column:
            return Span(shown, Position(number, column), Position(number, max(len(text.rstrip()) + 1, column + 1)))
        begin = len(text) - len(text.lstrip()) + 1
        return Span(shown, Position(number, begin), Position(number, max(len(text.rstrip()) + 1, begin + 1)))

    def text(self, place: Place | None) -> str:
        """The line of a place."""
        return "" if place is None else self.line(self.shown(place["file"]), place["line"]) or ""

    def shown(self, file: str) -> str:
        return shown_file(file, self.cwd)


def shown_file(file: str, cwd: Path) -> str:
    """An absolute path as findings have it: relative to `cwd` where the file is below it."""
    try:
        return Path(file).relative_to(cwd).as_posix()
    except ValueError:
        return Path(file).as_posix()


@define
class FindingBuilder:
    """Makes findings about the code around launches; about a launch where there is one."""

    result: ProbeResult
    places: Places
    launch: LaunchResult | None = None

    def finding_at(
        self, places: Sequence[Place], code: str, severity: Severity, message: str, help: str = "", *,
        backend: str | None = None, device: str | None = None,
    ) -> Finding:  # fmt: skip
        """A finding at the first of these places; without one where it is launched, else in the probed file."""
        launch, spec = self.launch, self.result.spec
        otherwise = spec.file if spec is not None else "<program>"
        own = launch.place if launch is not None else None
        span = self.places.span(places[0] if places else own, otherwise)
        related = []
        if launch is not None and places and own is not None:
            launched = self.places.span(own, otherwise)
            if (launched.path, launched.start.line) != (span.path, span.start.line):
                related.append(Related(launched, "launched here"))
        entry = all_rules().get(code)
        return Finding(
            code,
            entry.name if entry is not None else code.lower(),
            severity,
            message,
            span,
            help,
            kernel=launch.kernel if launch is not None else None,
            backend=backend,
            device=device,
            jax=self.result.parts.get("jax"),
            origin="probe",
            related=tuple(related),
            launches=(signature_of(launch.facts),) if launch is not None else (),
        )


def is_about(finding: Finding, launch: Mapping[str, Any], line: int | None, path: str | None = None) -> bool:
    """Whether a finding is about a launch, given its facts or its document: of its kernel, and it or a related place is
    at the line of the launch."""
    spans = [finding.span, *(related.span for related in finding.related)]
    there = any(line in (None, span.start.line) and path in (None, span.path) for span in spans)
    if finding.kernel != launch["kernel"] or not there:
        return False
    return not finding.launches or signature_of(launch) in finding.launches


def _characters(text: str, column: int) -> int:
    """A column counted in bytes as one counted in characters."""
    if text.isascii():
        return column
    return len(text.encode("utf-8", "surrogatepass")[: column - 1].decode("utf-8", "replace")) + 1


def place_of(culprit: Culprit) -> Place | None:
    """Where the operation stands, if that is known."""
    if "file" not in culprit or "line" not in culprit:
        return None
    place: Place = {"file": culprit["file"], "line": culprit["line"]}
    place["column"] = culprit.get("column")
    place["end_line"] = culprit.get("end_line")
    place["end_column"] = culprit.get("end_column")
    return place
