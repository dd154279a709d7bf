"""`pallasLint/report`: what probes found of a document, as the page that `pallas-lint probe --html` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pallas_lint.report.lines import Lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.probe.results import LaunchResult
    from pallas_lint.text.source import Source


def report(
    state: DocumentState, file: Path, texts: dict[str, Source], line: int | None, standalone: bool
) -> dict[str, Any] | None:
    """The answer to the request; None where nothing was probed that still holds."""
    from pallas_lint.probe.page import html

    launches = [launch for run in state.probed for launch in run.launches]
    if not launches:
        return None
    findings = state.probe_findings
    parts = state.probed[-1].parts
    lines = Lines(file.parent, {**texts, state.source.path: state.source})
    body = html.fragment(launches, findings, parts, lines.line)
    entries = [
        {"kernel": launch.kernel, "line": _line(launch), "anchor": f"launch-{at}"} for at, launch in enumerate(launches)
    ]
    current = None if line is None else _current(state, launches, line)
    return {
        "title": file.name,
        "html": html.page(body) if standalone else body,
        "launches": entries,
        "current": None if current is None else f"launch-{current}",
    }


def _line(launch: LaunchResult) -> int:
    """The line of a launch, from 0."""
    return int((launch.place or {"line": 1})["line"]) - 1


def _current(state: DocumentState, launches: Sequence[LaunchResult], line: int) -> int | None:
    """The launch that a line is about, in the function around it or in its kernel; of several the nearest."""
    from pallas_lint.syntax.outline import outline

    piece = next((each for each in outline(state.source).pieces if each.first <= line <= each.last), None)
    if piece is None:
        return None
    places = [
        (place, at)
        for at, launch in enumerate(launches)
        for place in (launch.facts["place"], launch.facts["kernel_place"])
        if place is not None and place["file"] == state.source.path
    ]
    near = [(abs(place["line"] - line), at) for place, at in places if piece.first <= place["line"] <= piece.last]
    return min(near)[1] if near else None
