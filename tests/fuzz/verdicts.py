"""What holds for the verdict on any text."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from pallas_lint import report as reports
from pallas_lint.lint import lint_source
from pallas_lint.report import FORMATS, Report
from pallas_lint.report.lines import Lines
from pallas_lint.run.project import Project
from pallas_lint.testing import settings as settings_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import FileResult, Finding, Span
    from pallas_lint.text.source import Source

NOWHERE = Path("/nonexistent")
_COMMAND = re.compile(r"::(error|warning|notice) [^\r\n]*::[^\r\n]*\n")
circumstances = st.tuples(
    st.sampled_from([None, "tpu", "triton", "mosaic-gpu", "tpu:v5e"]),
    st.sampled_from(["0.4.35", "0.6.2", "0.10.2", ">=0.4.35"]),
)


@lru_cache(maxsize=64)
def chosen(target: str | None, jax: str) -> Settings:
    return settings_for(jax, target)


def verdict(source: Source, target: str | None, jax: str) -> FileResult:
    """The verdict, of which all holds that must hold of any."""
    result = lint_source(source, chosen(target, jax), Project(NOWHERE))
    assert not result.errors, (result.errors, result.traceback)
    for span in _spans(result.findings):
        assert_inside(source, span)
    return result


def _spans(findings: tuple[Finding, ...]) -> Iterator[Span]:
    for finding in findings:
        edits = itertools.chain.from_iterable(fix.edits for fix in finding.fixes)
        yield from (finding.span, *(each.span for each in finding.related), *(edit.span for edit in edits))


def assert_inside(source: Source, span: Span) -> None:
    """The span is one of the text: its ends are in order, and each is a place of a line that there is."""
    assert span.path == source.path
    assert span.start <= span.end, span
    for place in (span.start, span.end):
        assert 1 <= place.line <= source.line_count, (span, source.line_count)
        # One past the last character is a place too: an end is exclusive, and something may be missing there.
        assert 1 <= place.column <= len(source.line(place.line)) + 2, span


def assert_reported(source: Source, result: FileResult) -> None:
    """Every format takes the findings, and what reads that format reads it."""
    lines = Lines(NOWHERE, {source.path: source})
    findings = [lines.with_cells(finding) for finding in result.findings]
    for statistics in (False, True):
        report = Report(findings, result.errors, 1, result.kernels, statistics=statistics, source_line=lines.line)
        rendered = {name: "".join(reports.render(name, report)) for name in FORMATS}
        for text in rendered.values():
            text.encode()
        assert len(json.loads(rendered["json"])["findings"]) == len(findings)
        assert len(json.loads(rendered["gitlab"])) == len(findings)
        (run,) = json.loads(rendered["sarif"])["runs"]
        assert len(run["results"]) == len(findings)
        ET.fromstring(rendered["junit"])
        commands = rendered["github"].splitlines(keepends=True)
        assert len(commands) == len(findings) and all(map(_COMMAND.fullmatch, commands))
