"""Writing suppressions: the comment that silences a finding, at a line where it can be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.finding import Edit, Fix, Position, Span
from pallas_lint.records import evolve, frozen
from pallas_lint.text.source import Source
from pallas_lint.triage.suppressions import silence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding

_OWN = re.compile(r"#[ \t]*pallas-lint[ \t]*:[ \t]*disable[ \t]*=[ \t]*[\w-]+(?:[ \t]*,[ \t]*[\w-]+)*", re.IGNORECASE)
NEVER = frozenset({"PAL001", "PAL002"})  # what does not parse cannot be excused, an idle comment is to be removed
_MAX_LINES = 40  # of a statement above the flagged line that are searched for a place


@frozen
class _NewComment:
    """`line` gets the comment at its end, or, with `above`, a line of its own before it."""

    line: int
    above: bool = False


def silencer(source: Source, finding: Finding) -> Fix | None:
    """The edit of `source` that silences one of its findings; None where no comment can.

    At the end of the finding's first line where a comment can stand there, else of its last, else above the statement.
    """
    if finding.code in NEVER:
        return None
    place = next((place for place in _candidates(source, finding) if _works(source, finding, place)), None)
    if place is None:
        return None
    return Fix(f"disable {finding.name} on this line", "safe", (_edit(source, place, finding.code),))


def _candidates(source: Source, finding: Finding) -> Iterator[_NewComment]:
    first, last = finding.span.start.line, finding.span.end.line
    for line in dict.fromkeys((first, last)):
        if not source.line(line).endswith("\\"):  # nothing may follow a continuation
            yield _NewComment(line)
    # Within a string, or before a continuation: above the statement.
    for line in range(first, max(first - _MAX_LINES, 0), -1):
        if source.line(line).strip() and not source.line(line - 1).endswith("\\"):
            yield _NewComment(line, above=True)


def _works(source: Source, finding: Finding, place: _NewComment) -> bool:
    """Whether the comment there is a comment, and silences the finding."""
    edit = _edit(source, place, finding.code)
    at = source.offset(edit.span.start)
    changed = Source(source.path, source.text[:at] + edit.text + source.text[at:], source.encoding)
    down = 1 if place.above and place.line <= finding.span.start.line else 0
    span = Span(source.path, _moved(finding.span.start, down), _moved(finding.span.end, down))
    return not silence(changed, [evolve(finding, span=span)])[0]


def _moved(position: Position, lines: int) -> Position:
    return Position(position.line + lines, position.column)


def _edit(source: Source, place: _NewComment, code: str) -> Edit:
    text = source.line(place.line)
    if place.above:
        blanks = text[: len(text) - len(text.lstrip())]
        start = Position(place.line, 1)
        added = f"{blanks}# pallas-lint: disable={code}\n"
    else:
        known = _OWN.search(text)
        start = Position(place.line, (known.end() if known else len(text.rstrip())) + 1)
        added = f",{code}" if known else f"  # pallas-lint: disable={code}"
    return Edit(Span(source.path, start, start), added)
