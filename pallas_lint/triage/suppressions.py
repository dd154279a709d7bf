"""Comments that silence findings, and the findings about those comments that silence nothing.

- `# pallas-lint: disable=PAL103,mod-comparison` after code: findings that start on that line, that end on it,
  or, on the first or last line of a statement, that start anywhere in it. Of a compound statement (`def`,
  `if`, `with`, ...) only the header counts, decorators included.
- the same alone on a line: the statement (or argument) that begins below it, comment lines in between not
  counted.
- `# pallas-lint: disable-next-line=PAL103` alone on a line is the same; behind code it is about the line below.
- `# pallas-lint: disable-file=PAL7` before the first statement (a docstring may stand before it): the whole
  file.
- `# noqa: PAL103` and `# noqa` as the first form; they are never called unused.

Text after the codes is a reason: `# pallas-lint: disable=PAL103 only ever sees finite input`.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from pallas_lint.finding import Edit, Finding, Fix, Severity, Span
from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tree_sitter import Tree

    from pallas_lint.syntax.comments import Comment, Comments
    from pallas_lint.text.source import Source

CODE, NAME = "PAL002", "unused-suppression"
DIRECTIVES = ("disable", "disable-next-line", "disable-file", "assume", "probe", "reference")
# Rules that only the probe decides: without it, a suppression of them may look unused.
_PROBE_ONLY = "PAL9"
MAX_NAMED = 8  # codes of a comment that a message names

_MARKER = re.compile(r"#[ \t]*(?:pallas-lint[ \t]*:|noqa\b)", re.IGNORECASE)
_DIRECTIVE = re.compile(r"#[ \t]*pallas-lint[ \t]*:[ \t]*([\w-]*)", re.IGNORECASE)
_CODES = re.compile(r"[ \t]*=[ \t]*([\w-]+(?:[ \t]*,[ \t]*[\w-]+)*)?")
_NOQA = re.compile(r"#[ \t]*noqa(?:[ \t]*:[ \t]*([A-Z]+[0-9]+(?:[ \t,]+[A-Z]+[0-9]+)*))?(?![\w-])", re.IGNORECASE)


@frozen
class SuppressionEntry:
    """One code, prefix or name in a comment. `start` and `end` are offsets into the text."""

    selector: str
    codes: frozenset[str]  # empty: it names no rule
    start: int
    end: int


@define(eq=False)
class Suppression:
    """One comment: which findings of which lines it silences, and which of its entries did."""

    start: int  # offsets of the directive, up to and with its last code
    end: int
    line: int
    entries: tuple[SuppressionEntry, ...]
    first: int = 0  # lines in which the start of a finding is silenced; 0 for the whole file
    last: int = 0
    whole_file: bool = False
    next_line: bool = False
    noqa: bool = False
    misplaced: bool = False  # disable-file after the first statement
    problem: str = ""  # what is wrong with the directive itself
    used: set[str] = field(factory=set)

    @property
    def lines(self) -> tuple[float, float]:
        """First and last of the lines in which findings may start."""
        return (0, math.inf) if self.whole_file else (self.first, self.last)

    @property
    def own(self) -> int:
        """The comment's own line, if it is about that; none for a comment on the next line."""
        return 0 if self.next_line else self.line

    @property
    def counts(self) -> bool:
        return not self.problem and not self.misplaced


def apply(
    source: Source,
    findings: Iterable[Finding],
    enabled_codes: frozenset[str],
    *,
    report_unused: bool = True,
    tree: Tree | None = None,
) -> list[Finding]:
    """`findings` less those silenced in `source`, plus PAL002 where it is enabled.

    Findings in other files pass through.

    `report_unused` False is for files of which only a part was judged. `tree`: the source's, where it is at hand.
    """
    findings = list(findings)
    own = any(finding.span.path == source.path for finding in findings)
    if not own and "pallas-lint" not in source.text.lower():
        return findings
    suppressions = find(source, tree)
    kept = _without_silenced(source, findings, suppressions)
    if report_unused and CODE in enabled_codes:
        unused = [f for s in suppressions if not s.noqa for f in _judge(source, s, enabled_codes)]
        kept += _without_silenced(source, unused, suppressions)
    return kept


def is_half_written(line: str) -> bool:
    """Whether a line ends in a directive that more letters make whole: `# pallas-lint: dis`, `disable=PAL1`."""
    match = _DIRECTIVE.match(line, max(line.rfind("#"), 0))
    if match is None:
        return False
    directive, (space, equals, codes) = match[1].lower(), line[match.end() :].partition("=")
    if space.strip(" \t"):
        return False
    if not equals:
        return any(word.startswith(directive) for word in DIRECTIVES)
    *whole, last = (code.strip(" \t") for code in codes.split(","))
    if not directive.startswith("disable") or not all(whole):
        return False
    from pallas_lint.ruleset.registry import all_rules

    known = [word.lower() for code, entry in all_rules().items() for word in (code, entry.name)]
    return any(word.startswith(last.lower()) and word != last.lower() for word in known)


def silence(source: Source, findings: Iterable[Finding]) -> tuple[list[Finding], set[tuple[str, int]]]:
    """`findings` less those silenced in `source`, and the (path, line) of the comments that silenced some.

    For a file that is not linted itself but holds what kernels elsewhere reach: when it is, its comments may
    seem to silence nothing.
    """
    findings = list(findings)
    if not any(finding.span.path == source.path for finding in findings):
        return findings, set()
    suppressions = find(source)
    kept = _without_silenced(source, findings, suppressions)
    return kept, {(source.path, suppression.line) for suppression in suppressions if suppression.used}


def _without_silenced(
    source: Source, findings: Sequence[Finding], suppressions: Sequence[Suppression]
) -> list[Finding]:
    """The findings that none of the suppressions of `source` silences; notes the entries that silence some.

    Neither compares each finding with each suppression: there may be thousands of both.
    """
    own = [finding for finding in findings if finding.span.path == source.path]
    if not own or not suppressions:
        return list(findings)
    places = {code: _Places(f for f in own if f.code == code) for code in {f.code for f in own}}
    silencing: dict[frozenset[str], list[Suppression]] = {}
    for suppression in suppressions:
        if suppression.counts:
            named = {entry.codes for entry in suppression.entries} or {frozenset(places)}
            hit = {c for c in named if any(places[code].touched_by(suppression) for code in c & places.keys())}
            suppression.used.update(entry.selector for entry in suppression.entries if entry.codes in hit)
            for codes in hit:
                silencing.setdefault(codes, []).append(suppression)
    silenced = [(codes, _Silenced(those)) for codes, those in silencing.items()]
    return [
        finding
        for finding in findings
        if finding.span.path != source.path
        or not any(finding.code in codes and lines.hold(finding) for codes, lines in silenced)
    ]


def _ends(finding: Finding) -> tuple[int, int]:
    """The first and the last line of a finding: a comment on either is about it."""
    span = finding.span
    return span.start.line, span.end.line - (span.end.column == 1 and span.end.line > span.start.line)


class _Places:
    """The places of the findings of one rule."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        ends = list(map(_ends, findings))
        self.starts = sorted(first for first, _ in ends)
        self.ends = {line for each in ends for line in each}

    def touched_by(self, suppression: Suppression) -> bool:
        first, last = suppression.lines
        at = bisect_left(self.starts, first)
        return suppression.own in self.ends or (at < len(self.starts) and self.starts[at] <= last)


class _Silenced:
    """The lines that some suppressions silence."""

    def __init__(self, suppressions: Iterable[Suppression]) -> None:
        lines = sorted(suppression.lines for suppression in suppressions)
        self.firsts = [first for first, _ in lines]
        self.lasts = list(accumulate((last for _, last in lines), max))  # of this one and all before it
        self.own = {suppression.own for suppression in suppressions}

    def hold(self, finding: Finding) -> bool:
        first, last = _ends(finding)
        before = bisect_right(self.firsts, first)
        return first in self.own or last in self.own or (before > 0 and self.lasts[before - 1] >= first)


def find(source: Source, parsed: Tree | None = None) -> list[Suppression]:
    """The suppressions in `source`, in order. Cheap where there are none; never raises on broken code."""
    places = [match.start() for match in _MARKER.finditer(source.text) if _concerns_us(match)]
    if not places:
        return []
    from pallas_lint.syntax.comments import Comments

    comments = Comments(source, parsed)
    return [s for comment in comments.holding(places) for s in _read(source, comments, comment)]


def _concerns_us(marker: re.Match[str]) -> bool:
    """False for a `noqa` of other linters' codes: files are full of them, not worth a parsed tree."""
    noqa = _NOQA.match(marker.string, marker.start())
    return noqa is None or noqa[1] is None or "PAL" in noqa[1].upper()


def _read(source: Source, comments: Comments, comment: Comment) -> Iterator[Suppression]:
    """The suppressions in a comment."""
    text, start = source.text[comment.start : comment.end], comment.start
    found: list[Suppression] = []
    for match in _DIRECTIVE.finditer(text):
        suppression = _directive(text, match, start, comment.line)
        if suppression is not None:
            found.append(suppression)
    noqa = _NOQA.search(text)
    if noqa:
        entries = _entries(noqa[1] or "", start + noqa.start(1)) if noqa[1] else ()
        if entries or noqa[1] is None:
            line, whole = comment.line, noqa.span()
            found.append(Suppression(start + whole[0], start + whole[1], line, entries, line, line, noqa=True))
    for suppression in found:
        if suppression.whole_file:
            suppression.misplaced = start > comments.first_statement
        elif suppression.next_line and not comment.alone:
            suppression.first = suppression.last = comment.line + 1
        elif not (suppression.noqa and comment.alone):
            suppression.first, suppression.last = comment.first, comment.last
        yield suppression


def _directive(text: str, match: re.Match[str], start: int, line: int) -> Suppression | None:
    word = match[1].lower()
    if word in ("assume", "probe", "reference"):
        return None
    whole, end = word == "disable-file", start + match.end()
    begin = start + match.start()
    if word not in DIRECTIVES:
        import difflib

        near = difflib.get_close_matches(word, DIRECTIVES, n=1)
        description = f"unknown directive `{match[1]}`" if word else "no directive after `pallas-lint:`"
        problem = (
            f"{description}, did you mean `{near[0]}`?" if near else f"{description}: known are {', '.join(DIRECTIVES)}"
        )
        return Suppression(begin, end, line, (), problem=problem)
    codes = _CODES.match(text, match.end())
    if not codes or not codes[1]:
        return Suppression(begin, end, line, (), problem=f"`{word}` names no rule: write `{word}=PAL103`")
    entries = _entries(codes[1], start + codes.start(1))
    next_line = word == "disable-next-line"
    return Suppression(begin, start + codes.end(1), line, entries, whole_file=whole, next_line=next_line)


def _entries(text: str, offset: int) -> tuple[SuppressionEntry, ...]:
    from pallas_lint.ruleset.registry import codes_of

    return tuple(
        SuppressionEntry(match[0], codes_of(match[0]), offset + match.start(), offset + match.end())
        for match in re.finditer(r"[\w-]+", text)
    )


def _judge(source: Source, suppression: Suppression, enabled: frozenset[str]) -> Iterator[Finding]:
    """The PAL002 finding about a suppression, if it deserves one."""
    if suppression.problem:
        yield _finding(source, suppression.start, suppression.end, suppression.problem, Severity.WARNING, ())
        return
    if suppression.misplaced:
        message = "`disable-file` after the first statement silences nothing"
        yield _finding(source, suppression.start, suppression.end, message, Severity.WARNING, ())
        return
    bad = [e for e in suppression.entries if e.selector not in suppression.used and _is_idle(e, enabled)]
    if not bad:
        return
    unknown = [e for e in bad if not e.codes]
    idle = [e for e in bad if e.codes]
    parts = [
        f"{_listed(entries)} {reason}"
        for entries, reason in (
            (unknown, "names no rule" if len(unknown) == 1 else "name no rules"),
            (idle, "silences nothing here" if len(idle) == 1 else "silence nothing here"),
        )
        if entries
    ]
    message = ", ".join(parts)
    start, end = (bad[0].start, bad[0].end) if len(bad) == 1 else (suppression.start, suppression.end)
    help_text = _hint(unknown[0].selector) if unknown else "remove it"
    yield _finding(source, start, end, message, Severity.WARNING, _removal(source, suppression, bad), help_text)


def _listed(entries: Sequence[SuppressionEntry], mark: str = "`") -> str:
    shown = [f"{mark}{entry.selector}{mark}" for entry in entries[:MAX_NAMED]]
    return ", ".join(shown) + (f" and {more} more" if (more := len(entries) - len(shown)) else "")


def _is_idle(entry: SuppressionEntry, enabled: frozenset[str]) -> bool:
    """Whether an entry that silenced nothing can be blamed: it names no rule, or one that could fire."""
    return not entry.codes or any(code in enabled and not code.startswith(_PROBE_ONLY) for code in entry.codes)


def _hint(selector: str) -> str:
    """The message for a word that names no rule, with the nearest name."""
    from pallas_lint.ruleset.registry import resolve

    try:
        resolve(selector)
    except ValueError as error:
        return str(error)
    return ""


def _finding(
    source: Source,
    start: int,
    end: int,
    message: str,
    severity: Severity,
    fixes: tuple[Fix, ...],
    help_text: str = "",
) -> Finding:
    return Finding(
        code=CODE,
        name=NAME,
        severity=severity,
        message=message,
        span=Span(source.path, source.position(start), source.position(end)),
        help=help_text,
        fixes=fixes,
    )


def _removal(source: Source, suppression: Suppression, bad: Sequence[SuppressionEntry]) -> tuple[Fix, ...]:
    """The fix that takes the bad entries away.

    With the last of them goes the comment, and the line if nothing else is on it.
    """
    text = source.text
    gone = {entry.start for entry in bad}
    good = [entry for entry in suppression.entries if entry.start not in gone]
    if good:
        first, last = suppression.entries[0].start, suppression.entries[-1].end
        title = f"remove {_listed(bad, '')}"
        return (Fix(title, "safe", (_edit(source, first, last, ",".join(e.selector for e in good)),)),)
    line_start, line_end = source.extent(suppression.line)
    # A reason goes with the directive; another comment on the same line stays.
    another = text.find("#", suppression.end, line_end)
    start, end = suppression.start, line_end if another < 0 else another
    if another < 0:
        before = text[line_start:start]
        start -= len(before) - len(before.rstrip())
        if not before.strip():
            start = line_start
            end += 2 if text[line_end : line_end + 2] == "\r\n" else line_end < len(text)
    return (Fix("remove the suppression", "safe", (_edit(source, start, end, ""),)),)


def _edit(source: Source, start: int, end: int, text: str) -> Edit:
    return Edit(Span(source.path, source.position(start), source.position(end)), text)
