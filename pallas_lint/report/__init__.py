"""Reports: one module a format, each turning a `Report` into text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pallas_lint.records import field, frozen
from pallas_lint.report.style import Style

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pallas_lint.config.targets import JaxVersions
    from pallas_lint.finding import Finding, LintError
    from pallas_lint.launch_summary import LaunchSummary
    from pallas_lint.report.lines import SourceLine

FORMATS = ("full", "concise", "agent", "json", "sarif", "github", "gitlab", "junit")


@frozen
class Assumed:
    """The jax version that was assumed where none is known."""

    version: str
    files: Sequence[str] = ()  # whose kernels were judged for it; none: those of every file
    others: int = 0  # files whose version is known

    @classmethod
    def of(cls, judged: Mapping[str, JaxVersions]) -> Assumed | None:
        """What was assumed in a run, given the versions for which the kernels of each file were judged."""
        assumed = {file: jax for file, jax in judged.items() if jax.assumed}
        if not assumed:
            return None
        others = len(judged) - len(assumed)
        return cls(next(iter(assumed.values())).text, tuple(assumed) if others else (), others)


@frozen
class Report:
    """The result of one run, for a report."""

    findings: Sequence[Finding] = ()
    errors: Sequence[LintError] = ()
    files: int = 0
    kernels: int = 0
    launches: Sequence[dict[str, Any]] = ()  # that the probe saw
    functions: Sequence[dict[str, Any]] = ()  # what whole functions cost
    launched: Sequence[tuple[str, Sequence[Finding]]] = ()  # what became of launches, and their findings
    charts: Mapping[tuple[str, ...], Sequence[str]] = field(factory=dict)  # lines by a finding's code, kernel, message
    fixed: int = 0  # fixes applied in this run
    assumed: Assumed | None = None
    notes: Sequence[str] = ()
    quiet: bool = False  # findings only
    statistics: bool = False  # counts by rule (text formats: instead of the findings)
    style: Style = field(factory=Style)
    width: int | None = None  # columns that text has to fit into; None: lines are as long as they are
    source_line: SourceLine = lambda path, number, cell=None: None  # the text of a line, None if unknown
    seen: Sequence[LaunchSummary] = ()  # each place that launches a kernel
    unjudged: Sequence[str] = ()  # requested stages of the probe, and why they could not be judged
    jax: Sequence[str] = ()  # for which versions kernels were judged: "jax 0.10.2 (uv.lock)"


def render(output_format: str, report: Report) -> Iterator[str]:
    """The report in one of `FORMATS`, in pieces that each end with a newline."""
    module = import_module(f"pallas_lint.report.{output_format}")
    pieces: Iterator[str] = module.render(report)
    return pieces
