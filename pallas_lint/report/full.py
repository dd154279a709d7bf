"""The full format, for people: each finding with its source, where it is launched, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import ELSEWHERE
from pallas_lint.report import footer, statistics
from pallas_lint.report.concise import circumstances
from pallas_lint.report.footer import file_of
from pallas_lint.report.style import cells, visible
from pallas_lint.report.wrapping import columns_of, wrapped
from pallas_lint.text.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pallas_lint.finding import Finding, Related, Span
    from pallas_lint.report import Report

MAX_LINE_WIDTH = 140  # columns of a source line that are shown
_CUT = "…"
MIN_ALIKE_TO_MERGE = 4  # findings with the same message in one file: from here on the first stands for all
MAX_LINES = 6  # lines of a long span that are shown; of a longer one its head and its last line


def render(report: Report) -> Iterator[str]:
    """Each finding as a paragraph, then the footer."""
    if report.statistics:
        yield from statistics.render(report)
        yield from footer.render(report)
        return
    if report.quiet or not report.launched:
        yield from findings(report)
    else:
        yield from _by_launch(report)
    yield from footer.render(report)


def findings(report: Report) -> Iterator[str]:
    """Each finding as a paragraph."""
    for _, paragraph in _paragraphs(report):
        yield paragraph


def _by_launch(report: Report) -> Iterator[str]:
    """The findings of each launch, and below them what became of it; first those that are about none."""
    left = list(_paragraphs(report))
    blocks: list[str] = []
    for text, own in report.launched:
        blocks += [paragraph for finding, paragraph in left if finding in own]
        left = [each for each in left if each[0] not in own]
        blocks.append(f"{text}\n\n")
    yield from (paragraph for _, paragraph in left)
    yield from blocks


def _paragraphs(report: Report) -> Iterator[tuple[Finding, str]]:
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for finding in report.findings:
        alike.setdefault((finding.span.path, finding.code, finding.severity, finding.message), []).append(finding)
    for same in alike.values():
        shown = same if len(same) < MIN_ALIKE_TO_MERGE else same[:1]
        for finding in shown:
            lines = [*_paragraph(finding, report), *_rest(finding, same[len(shown) :], report)]
            yield finding, "\n".join(lines) + "\n\n"


def _paragraph(finding: Finding, report: Report) -> Iterator[str]:
    style, span = report.style, finding.span
    code = style.page(style.severity(finding.severity, finding.code), finding.page)
    title = f"{code} {style.bold(finding.name)} [{finding.severity.value}]"
    place = _place(span, report)
    if report.width is not None and columns_of(place) + 1 + columns_of(title) > report.width:
        yield place
        yield title
    else:
        yield f"{place} {title}"
    yield from _indented("  ", visible(finding.message), report)
    gutter = _gutter(finding, report)
    yield from _excerpt(span, report, gutter, lambda text: style.severity(finding.severity, text), context=True)
    listed = _listed(finding)
    for related in finding.related[: len(finding.related) - len(listed)]:
        text = f"{visible(related.message)}: {_place(related.span, report)}"
        yield from _indented(f"{' ' * gutter} {style.place('::')} ", text, report)
        yield from _excerpt(related.span, report, gutter, style.place, context=False)
    if listed:
        yield from _remark("more", f"and in {'; '.join(_lines_by_file(listed))}", gutter, report)
    chart = report.charts.get((finding.code, finding.kernel or "", finding.message))
    if chart:
        yield f"{' ' * gutter} {style.dim('=')} {style.bold('as it can happen:')}"
        yield from (f"{' ' * gutter}   {line}" for line in chart)
    facts = circumstances(finding)
    if facts:
        named = [f"kernel {facts[0]}", *facts[1:]] if finding.kernel else facts
        yield from _remark("for", ", ".join(named), gutter, report)
    if finding.help:
        yield from _remark("help", visible(finding.help), gutter, report)
    if finding.fixes:
        fix = min(finding.fixes, key=lambda fix: fix.applicability != "safe")
        options = "--fix" if fix.applicability == "safe" else "--fix --unsafe-fixes"
        yield from _remark("fix", f"{visible(fix.title)} ({options})", gutter, report)


def _listed(finding: Finding) -> list[Related]:
    """The places of the same finding elsewhere of which only the lines are shown: the first ones stand for all."""
    elsewhere = [related for related in finding.related if related.message == ELSEWHERE]
    return elsewhere[1:] if len(elsewhere) >= MIN_ALIKE_TO_MERGE else []


def _lines_by_file(places: list[Related]) -> Iterator[str]:
    lines: dict[str, list[str]] = {}
    for place in places:
        lines.setdefault(file_of(place.span), []).append(str(place.span.start.line))
    for file, numbers in lines.items():
        yield f"{file}: {plural('line', len(numbers))} {', '.join(numbers)}"


def _rest(finding: Finding, same: list[Finding], report: Report) -> Iterator[str]:
    """Where else in the file the same is found."""
    if same:
        lines = ", ".join(str(other.span.start.line) for other in same)
        text = f"{len(same)} times the same in this file: lines {lines}"
        yield from _remark("more", text, _gutter(finding, report), report)


def _place(span: Span, report: Report) -> str:
    text = f"{report.style.path(file_of(span))}:{span.start.line}:{span.start.column}"
    return report.style.link(text, span.path)


def _remark(label: str, text: str, gutter: int, report: Report) -> Iterator[str]:
    head = f"{' ' * gutter} {report.style.dim('=')} "
    yield from _indented(head, f"{report.style.bold(label + ':')} {text}", report)


def _indented(head: str, text: str, report: Report) -> Iterator[str]:
    """`text` behind `head`, in lines that fit; the further ones begin below the first."""
    column = columns_of(head)
    for number, line in enumerate(wrapped(text, report.width, column, column)):
        yield line if number else head + line


def _gutter(finding: Finding, report: Report) -> int:
    """Columns for the line numbers of all excerpts of a finding."""
    spans = [finding.span, *(related.span for related in finding.related)]
    return max(len(str(span.end.line)) for span in spans) + 1


def _excerpt(span: Span, report: Report, gutter: int, mark: Callable[[str], str], *, context: bool) -> Iterator[str]:
    """The source lines of `span` with carets below what it covers; nothing where the text is not at hand."""
    dim = report.style.dim
    # Beside the gutter and its bar; both ends may be cut off, which an ellipsis shows.
    room = MAX_LINE_WIDTH if report.width is None else report.width - gutter - len(" | ") - 2 * len(_CUT)
    longest = min(MAX_LINE_WIDTH, max(room, 1))
    bar = dim("|")
    first, last = span.start.line, span.end.line
    if last > first and span.end.column == 1:
        last -= 1
    shown = list(range(first, last + 1))
    if len(shown) > MAX_LINES:
        shown = [*shown[: MAX_LINES - 1], 0, last]
    texts = {number: report.source_line(span.path, number, span.cell) for number in shown if number}
    if texts[first] is None:
        return
    before = report.source_line(span.path, first - 1, span.cell) if context and first > 1 else None
    if before and before.strip():
        yield f"{dim(f'{first - 1:>{gutter}}')} {bar} {underline(before, 0, 0, longest)[0]}".rstrip()
    for number in shown:
        if not number:
            yield f"{'...':>{gutter}}"
            continue
        text = texts[number] or ""
        begin = span.start.column - 1 if number == first else len(text) - len(text.lstrip())
        end = span.end.column - 1 if number == span.end.line else len(text.rstrip())
        line, carets = underline(text, begin, end, longest)
        yield f"{dim(f'{number:>{gutter}}')} {bar} {line}".rstrip()
        if carets.strip():
            blanks = len(carets) - len(carets.lstrip())
            yield f"{' ' * gutter} {bar} {' ' * blanks}{mark(carets.strip())}"


def underline(text: str, begin: int, end: int, longest: int = MAX_LINE_WIDTH) -> tuple[str, str]:
    """A source line as shown, and carets below its characters `begin` to `end`; both cut to `longest` columns.

    At least one caret is drawn where there is something to point at or `begin` is the end of the line.
    """
    length = len(text)
    begin = min(max(begin, 0), length)
    end = min(max(end, begin), length)
    start = 0
    if length > longest and begin > longest // 2:
        # A line of megabytes is never walked whole: show a window around the place.
        start = max(0, min(begin - longest // 4, length - longest))
    window = text[start : start + longest]
    prefix = _CUT if start else ""
    line, carets, column = [prefix], [" " * len(prefix)], len(prefix)
    place = column  # of `begin`
    for index, (shown, columns) in enumerate(cells(window), start=start):
        if index == begin:
            place = column
        if column + columns > len(prefix) + longest:
            break
        line.append(shown)
        carets.append(("^" if begin <= index < max(end, begin + 1) else " ") * columns)
        column += columns
    if start + len(line) - 1 < length:
        line.append(_CUT)
    drawn = "".join(carets).rstrip()
    if not drawn:
        # Nothing that takes up room is covered: the end of the line, or a combining character.
        drawn = " " * (column if begin == length else place) + "^"
    return "".join(line), drawn
