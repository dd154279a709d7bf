"""The full format, for people: each finding with its source, where it is launched, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.report import footer, statistics
from pallas_lint.report.concise import circumstances, place_of_file
from pallas_lint.report.style import cells, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.finding import Finding, Span
    from pallas_lint.report import Report

LONGEST_LINE = 140  # columns of a source line that are shown
MOST_ALIKE = 4  # findings that say the same of one file: from here on the first stands for all
MOST_LINES = 6  # lines of a long span that are shown; of a longer one its head and its last line


def render(report: Report) -> Iterator[str]:
    """Each finding as a paragraph, then the footer."""
    if report.statistics:
        yield from statistics.render(report)
        yield from footer.render(report)
        return
    yield from findings(report)
    if not report.quiet:
        yield from (f"{paragraph}\n\n" for paragraph in report.paragraphs)
    yield from footer.render(report)


def findings(report: Report) -> Iterator[str]:
    """Each finding as a paragraph."""
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in report.findings:
        alike.setdefault((finding.span.path, finding.code, finding.message), []).append(finding)
    for same in alike.values():
        shown = same if len(same) < MOST_ALIKE else same[:1]
        for finding in shown:
            yield "\n".join([*_paragraph(finding, report), *_rest(finding, same[len(shown) :], report)]) + "\n\n"


def _paragraph(finding: Finding, report: Report) -> Iterator[str]:
    style, span = report.style, finding.span
    title = f"{style.severity(finding.severity, finding.code)} {style.bold(finding.name)}"
    yield f"{_place(span, report)} {title} [{finding.severity.value}]"
    yield f"  {visible(finding.message)}"
    gutter = _gutter(finding, report)
    yield from _excerpt(span, report, gutter, lambda text: style.severity(finding.severity, text), context=True)
    for related in finding.related:
        yield f"{' ' * gutter} {style.place('::')} {visible(related.message)}: {_place(related.span, report)}"
        yield from _excerpt(related.span, report, gutter, style.place, context=False)
    facts = circumstances(finding)
    if facts:
        named = [f"kernel {facts[0]}", *facts[1:]] if finding.kernel else facts
        yield _remark("for", ", ".join(named), gutter, report)
    if finding.help:
        yield _remark("help", visible(finding.help), gutter, report)
    if finding.fixes:
        fix = min(finding.fixes, key=lambda fix: fix.applicability != "safe")
        options = "--fix" if fix.applicability == "safe" else "--fix --unsafe-fixes"
        yield _remark("fix", f"{visible(fix.title)} ({options})", gutter, report)


def _rest(finding: Finding, same: list[Finding], report: Report) -> Iterator[str]:
    """Where else in the file the same is found."""
    if same:
        lines = ", ".join(str(other.span.start.line) for other in same)
        text = f"{len(same)} times the same in this file: lines {lines}"
        yield _remark("more", text, _gutter(finding, report), report)


def _place(span: Span, report: Report) -> str:
    return f"{report.style.path(place_of_file(span))}:{span.start.line}:{span.start.column}"


def _remark(label: str, text: str, gutter: int, report: Report) -> str:
    return f"{' ' * gutter} {report.style.dim('=')} {report.style.bold(label + ':')} {text}"


def _gutter(finding: Finding, report: Report) -> int:
    """Columns for the line numbers of all excerpts of a finding."""
    spans = [finding.span, *(related.span for related in finding.related)]
    return max(len(str(span.end.line)) for span in spans) + 1


def _excerpt(span: Span, report: Report, gutter: int, mark: Callable[[str], str], *, context: bool) -> Iterator[str]:
    """The source lines of `span` with carets below what it covers; nothing where the text is not at hand."""
    dim = report.style.dim
    bar = dim("|")
    first, last = span.start.line, span.end.line
    if last > first and span.end.column == 1:
        last -= 1
    shown = list(range(first, last + 1))
    if len(shown) > MOST_LINES:
        shown = [*shown[: MOST_LINES - 1], 0, last]
    texts = {number: report.source_line(span.path, number, span.cell) for number in shown if number}
    if texts[first] is None:
        return
    before = report.source_line(span.path, first - 1, span.cell) if context and first > 1 else None
    if before and before.strip():
        yield f"{dim(f'{first - 1:>{gutter}}')} {bar} {_plain(before)}".rstrip()
    for number in shown:
        if not number:
            yield f"{'...':>{gutter}}"
            continue
        text = texts[number] or ""
        begin = span.start.column - 1 if number == first else len(text) - len(text.lstrip())
        end = span.end.column - 1 if number == span.end.line else len(text.rstrip())
        line, carets = underline(text, begin, end)
        yield f"{dim(f'{number:>{gutter}}')} {bar} {line}".rstrip()
        if carets.strip():
            blanks = len(carets) - len(carets.lstrip())
            yield f"{' ' * gutter} {bar} {' ' * blanks}{mark(carets.strip())}"


def _plain(text: str) -> str:
    return underline(text, 0, 0)[0]


def underline(text: str, begin: int, end: int) -> tuple[str, str]:
    """A source line as shown, and carets below its characters `begin` to `end`; both cut to the longest line.

    At least one caret is drawn where there is something to point at or `begin` is the end of the line.
    """
    length = len(text)
    begin = min(max(begin, 0), length)
    end = min(max(end, begin), length)
    start = 0
    if length > LONGEST_LINE and begin > LONGEST_LINE // 2:
        # A line of megabytes is never walked whole: show a window around the place.
        start = max(0, begin - LONGEST_LINE // 4)
    window = text[start : start + LONGEST_LINE]
    prefix = "..." if start else ""
    line, carets, column = [prefix], [" " * len(prefix)], len(prefix)
    place = column  # of `begin`
    for index, (shown, columns) in enumerate(cells(window), start=start):
        if index == begin:
            place = column
        if column + columns > LONGEST_LINE:
            break
        line.append(shown)
        carets.append(("^" if begin <= index < max(end, begin + 1) else " ") * columns)
        column += columns
    if start + len(window) < length or column >= LONGEST_LINE:
        line.append("...")
    drawn = "".join(carets).rstrip()
    if not drawn:
        # Nothing that takes up room is covered: the end of the line, or a combining character.
        drawn = " " * (column if begin == length else place) + "^"
    return "".join(line), drawn
