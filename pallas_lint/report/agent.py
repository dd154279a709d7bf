"""The format for coding agents: one line for equal findings, with help and fixes, and no decoration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.launch_summary import Coverage
from pallas_lint.report import statistics
from pallas_lint.report.footer import file_of
from pallas_lint.report.style import visible
from pallas_lint.text.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.finding import Finding
    from pallas_lint.launch_summary import LaunchSummary
    from pallas_lint.report import Report

_MAX_PLACES = 5  # launches that are named as lacking something


def render(report: Report) -> Iterator[str]:
    """`path:line,line PAL101 error: message. help [safe fix: title]`, notes, and what was judged."""
    if report.statistics:
        yield from statistics.render(report)
    else:
        yield from findings(report.findings)
    for text, _ in () if report.quiet else report.launched:
        yield f"{' '.join(text.split())}\n"
    if report.quiet:
        return
    if report.fixed:
        yield f"fixed {count_of(report.fixed, 'finding')}\n"
    for note in report.notes:
        yield f"note: {visible(note)}\n"
    for stage in report.unjudged:
        yield f"not judged: {visible(stage)}\n"
    yield f"{judged(report)}\n"


def findings(found: Sequence[Finding]) -> Iterator[str]:
    """One line for all findings of a file with the same message, in the order of the first of each."""
    lines: dict[tuple[str, str], list[int]] = {}
    for finding in found:
        numbers = lines.setdefault((file_of(finding.span), _text_of(finding)), [])
        if finding.span.start.line not in numbers:
            numbers.append(finding.span.start.line)
    for (path, description), numbers in lines.items():
        yield f"{path}:{','.join(map(str, numbers))} {description}\n"


def _text_of(finding: Finding) -> str:
    parts = [f"{finding.code} {finding.severity.value}: {_sentence(finding.message)}"]
    if finding.help:
        parts.append(_sentence(finding.help))
    parts += (f"[{fix.applicability} fix: {visible(fix.title)}]" for fix in finding.fixes)
    return " ".join(parts)


def _sentence(text: str) -> str:
    text = visible(text).rstrip()
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def judged(report: Report) -> str:
    """What kernels were checked for, for how many launches shapes are known, and how to supply the rest."""
    if not report.findings and not report.kernels and not report.seen:
        return f"no kernel in {count_of(report.files, 'file')}"
    backends = sorted({each.backend for each in report.seen if each.judged and each.backend is not None})
    # Its source is left out where it was passed on the command line.
    versions = [version.removesuffix(" (--jax-version)") for version in report.jax]
    what = f"judged for {', '.join((*backends, *versions))}" if backends or versions else "judged"
    coverage = Coverage.of(report.seen)
    if not coverage.launches:
        return f"{what}; shapes known for what was probed"
    line = f"{what}; shapes known for {coverage.shapes} of {count_of(coverage.launches, 'launch')}"
    return line + _missing(report.seen)


def _missing(seen: Sequence[LaunchSummary]) -> str:
    """What to pass or to write so that more is known; places where that is not for all launches."""
    unshaped = [each for each in seen if each.followed and not each.shapes]
    unknown = [each for each in seen if each.backend is None]
    lost = [each for each in seen if not each.followed]
    parts = [
        *([f"add calls with literal shapes{_places(unshaped, seen)}"] if unshaped else []),
        *([f"pass --target{_places(unknown, seen)}"] if unknown else []),
        *([f"kernel not found{_places(lost, seen)}"] if lost else []),
    ]
    return f": {'; '.join(parts)}" if parts else ""


def _places(launches: Sequence[LaunchSummary], seen: Sequence[LaunchSummary]) -> str:
    if len(launches) == len(seen):
        return ""
    named = ", ".join(f"{file_of(each)}:{each.line}" for each in launches[:_MAX_PLACES])
    return f" ({named}{', …' if len(launches) > _MAX_PLACES else ''})"
