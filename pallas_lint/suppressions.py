"""Comments that silence findings, and the findings about those comments that silence nothing.

- `# pallas-lint: disable=PAL103,mod-comparison` after code: findings that start on that line, that end on it,
  or, on the first or last line of a statement, that start anywhere in it. Of a compound statement (`def`,
  `if`, `with`, ...) only the header counts, decorators included.
- the same alone on a line: the statement (or argument) that begins below it, comment lines in between not
  counted.
- `# pallas-lint: disable-file=PAL7` before the first statement (a docstring may stand before it): the whole
  file.
- `# noqa: PAL103` and `# noqa` as the first form; they are never called unused.

Text after the codes is a reason: `# pallas-lint: disable=PAL103 only ever sees finite input`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from pallas_lint.finding import Edit, Finding, Fix, Severity, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tree_sitter import Node, Tree

    from pallas_lint.source import Source

CODE, NAME = "PAL002", "unused-suppression"
DIRECTIVES = ("disable", "disable-file", "assume", "probe")
# Rules that only the probe decides: a run without it cannot tell that their suppression is unused.
_PROBE_ONLY = "PAL9"

_MARKER = re.compile(r"#[ \t]*(?:pallas-lint[ \t]*:|noqa\b)", re.IGNORECASE)
_DIRECTIVE = re.compile(r"#[ \t]*pallas-lint[ \t]*:[ \t]*([\w-]*)", re.IGNORECASE)
_CODES = re.compile(r"[ \t]*=[ \t]*([\w-]+(?:[ \t]*,[ \t]*[\w-]+)*)?")
_NOQA = re.compile(r"#[ \t]*noqa(?:[ \t]*:[ \t]*([A-Z]+[0-9]+(?:[ \t,]+[A-Z]+[0-9]+)*))?(?![\w-])", re.IGNORECASE)
_CLAUSES = (
    "elif_clause",
    "else_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
    "case_clause",
)
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))  # of UTF-8: without them there is one byte a character
_BLOCKS = ("module", "block", "ERROR")


@frozen
class Entry:
    """One code, prefix or name in a comment. `start` and `end` are offsets into the text."""

    selector: str
    codes: frozenset[str]  # empty: it names no rule
    start: int
    end: int


@define(eq=False)
class Suppression:
    """One comment's say: which findings of which lines it silences, and which of its entries did."""

    start: int  # offsets of the directive, up to and with its last code
    end: int
    line: int
    entries: tuple[Entry, ...]
    first: int = 0  # lines in which the start of a finding is silenced; 0 for the whole file
    last: int = 0
    whole_file: bool = False
    noqa: bool = False
    misplaced: bool = False  # disable-file after the first statement
    problem: str = ""  # what is wrong with the directive itself
    used: set[str] = field(factory=set)

    def covers(self, finding: Finding) -> bool:
        if self.whole_file:
            return not self.misplaced
        span = finding.span
        last = span.end.line - (span.end.column == 1 and span.end.line > span.start.line)
        return self.first <= span.start.line <= self.last or self.line in (span.start.line, last)

    def silences(self, finding: Finding) -> bool:
        """Whether it silences `finding`; notes the entries that do."""
        if self.problem or not self.covers(finding):
            return False
        if self.noqa and not self.entries:
            return True
        matching = [entry.selector for entry in self.entries if finding.code in entry.codes]
        self.used.update(matching)
        return bool(matching)


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
    kept = [f for f in findings if f.span.path != source.path or not _silenced(f, suppressions)]
    if report_unused and CODE in enabled_codes:
        unused = [f for s in suppressions if not s.noqa for f in _judge(source, s, enabled_codes)]
        kept += [finding for finding in unused if not _silenced(finding, suppressions)]
    return kept


def silence(source: Source, findings: Iterable[Finding]) -> tuple[list[Finding], set[tuple[str, int]]]:
    """`findings` less those silenced in `source`, and the (path, line) of the comments that silenced some.

    For a file that is not linted itself but holds what kernels elsewhere reach: when it is, its comments may
    seem to silence nothing.
    """
    findings = list(findings)
    if not any(finding.span.path == source.path for finding in findings):
        return findings, set()
    suppressions = find(source)
    kept = [f for f in findings if f.span.path != source.path or not _silenced(f, suppressions)]
    return kept, {(source.path, suppression.line) for suppression in suppressions if suppression.used}


def _silenced(finding: Finding, suppressions: Iterable[Suppression]) -> bool:
    # Every one is asked, not only up to the first that answers: each that silences it is in use.
    return any([suppression.silences(finding) for suppression in suppressions])  # noqa: C419


def find(source: Source, parsed: Tree | None = None) -> list[Suppression]:
    """The suppressions in `source`, in order. Cheap where there are none; never raises on broken code."""
    places = [match.start() for match in _MARKER.finditer(source.text) if _concerns_us(match)]
    if not places:
        return []
    tree = _Tree(source, parsed)
    comments: dict[int, int] = {}
    for place in places:
        comment = tree.comment_at(place)
        if comment is not None:
            comments[comment[0]] = comment[1]
    return [s for start, end in sorted(comments.items()) for s in _read(source, tree, start, end)]


def _concerns_us(marker: re.Match[str]) -> bool:
    """False for a `noqa` of other linters' codes: files are full of them, not worth a parsed tree."""
    noqa = _NOQA.match(marker.string, marker.start())
    return noqa is None or noqa[1] is None or "PAL" in noqa[1].upper()


def _read(source: Source, tree: _Tree, start: int, end: int) -> Iterator[Suppression]:
    """The suppressions in the comment from `start` to `end`."""
    text = source.text[start:end]
    line = source.position(start).line
    found: list[Suppression] = []
    for match in _DIRECTIVE.finditer(text):
        suppression = _directive(text, match, start, line)
        if suppression is not None:
            found.append(suppression)
    noqa = _NOQA.search(text)
    if noqa:
        entries = _entries(noqa[1] or "", start + noqa.start(1)) if noqa[1] else ()
        if entries or noqa[1] is None:
            found.append(Suppression(start + noqa.start(), start + noqa.end(), line, entries, line, line, noqa=True))
    if not found:
        return
    first, last = tree.lines_below(start) if tree.alone(start) else tree.lines_around(start)
    for suppression in found:
        if suppression.whole_file:
            suppression.misplaced = start > tree.first_statement
        elif not (suppression.noqa and tree.alone(start)):
            suppression.first, suppression.last = first, last
        yield suppression


def _directive(text: str, match: re.Match[str], start: int, line: int) -> Suppression | None:
    word = match[1].lower()
    if word in ("assume", "probe"):
        return None
    whole, end = word == "disable-file", start + match.end()
    begin = start + match.start()
    if word not in DIRECTIVES:
        import difflib

        near = difflib.get_close_matches(word, DIRECTIVES, n=1)
        said = f"unknown directive `{match[1]}`" if word else "no directive after `pallas-lint:`"
        problem = f"{said}, did you mean `{near[0]}`?" if near else f"{said}: known are {', '.join(DIRECTIVES)}"
        return Suppression(begin, end, line, (), problem=problem)
    codes = _CODES.match(text, match.end())
    if not codes or not codes[1]:
        return Suppression(begin, end, line, (), problem=f"`{word}` names no rule: write `{word}=PAL103`")
    entries = _entries(codes[1], start + codes.start(1))
    return Suppression(begin, start + codes.end(1), line, entries, whole_file=whole)


def _entries(text: str, offset: int) -> tuple[Entry, ...]:
    return tuple(
        Entry(match[0], _resolved(match[0]), offset + match.start(), offset + match.end())
        for match in re.finditer(r"[\w-]+", text)
    )


def _resolved(selector: str) -> frozenset[str]:
    from pallas_lint.rule import resolve

    try:
        return resolve(selector)
    except ValueError:
        return frozenset()


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
        f"{_listed(entries)} {said}"
        for entries, said in (
            (unknown, "names no rule" if len(unknown) == 1 else "name no rules"),
            (idle, "silences nothing here" if len(idle) == 1 else "silence nothing here"),
        )
        if entries
    ]
    message = ", ".join(parts)
    start, end = (bad[0].start, bad[0].end) if len(bad) == 1 else (suppression.start, suppression.end)
    help_text = _hint(unknown[0].selector) if unknown else "remove it"
    yield _finding(source, start, end, message, Severity.WARNING, _removal(source, suppression, bad), help_text)


def _listed(entries: Iterable[Entry]) -> str:
    return ", ".join(f"`{entry.selector}`" for entry in entries)


def _is_idle(entry: Entry, enabled: frozenset[str]) -> bool:
    """Whether an entry that silenced nothing can be blamed: it names no rule, or one that could fire."""
    return not entry.codes or any(code in enabled and not code.startswith(_PROBE_ONLY) for code in entry.codes)


def _hint(selector: str) -> str:
    """What `resolve` says about a word that names no rule: it knows the nearest one."""
    from pallas_lint.rule import resolve

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


def _removal(source: Source, suppression: Suppression, bad: Sequence[Entry]) -> tuple[Fix, ...]:
    """The fix that takes the bad entries away.

    With the last of them goes the comment, and the line if nothing else is on it.
    """
    text = source.text
    good = [entry for entry in suppression.entries if entry not in bad]
    if good:
        first, last = suppression.entries[0].start, suppression.entries[-1].end
        title = f"remove {', '.join(entry.selector for entry in bad)}"
        return (Fix(title, "safe", (_edit(source, first, last, ",".join(e.selector for e in good)),)),)
    line_start = max(text.rfind("\n", 0, suppression.start), text.rfind("\r", 0, suppression.start)) + 1
    line_end = next((i for i in range(suppression.end, len(text)) if text[i] in "\r\n"), len(text))
    # A reason goes with the directive; another comment on the same line stays.
    another = text.find("#", suppression.end, line_end)
    start, end = suppression.start, line_end if another < 0 else another
    before = text[line_start:start]
    if another < 0:
        start -= len(before) - len(before.rstrip())
        if not before.strip():
            start = line_start
            end += 2 if text[line_end : line_end + 2] == "\r\n" else line_end < len(text)
    return (Fix("remove the suppression", "safe", (_edit(source, start, end, ""),)),)


def _edit(source: Source, start: int, end: int, text: str) -> Edit:
    return Edit(Span(source.path, source.position(start), source.position(end)), text)


class _Tree:
    """What stands where, by tree-sitter: it survives broken code.

    Offsets are into the text, lines count from 1.
    """

    def __init__(self, source: Source, parsed: Tree | None = None) -> None:
        from pallas_lint.syntax.outline import parser

        self._source = source
        self._text = source.text
        self._ascii = source.text.isascii()
        data = source.text.encode("utf-8", "surrogatepass")
        self._data = data
        # The tree must outlive its nodes, so it is kept.
        self._parsed = parser().parse(data) if parsed is None or "\r" in source.text else parsed
        self._root = self._parsed.root_node

    def _byte(self, offset: int) -> int:
        return offset if self._ascii else len(self._text[:offset].encode("utf-8", "surrogatepass"))

    def _offset(self, byte: int) -> int:
        return byte if self._ascii else len(self._data[:byte].translate(None, _CONTINUATION_BYTES))

    def _line(self, byte: int) -> int:
        return self._source.position(min(self._offset(byte), len(self._text))).line

    def _node(self, offset: int) -> Node | None:
        byte = self._byte(offset)
        return self._root.descendant_for_byte_range(byte, byte)

    def comment_at(self, offset: int) -> tuple[int, int] | None:
        """The extent of the comment that `offset` is in, or None if it is in something else."""
        node = self._node(offset)
        if node is None or node.type != "comment" or node.start_byte > self._byte(offset):
            return None
        start = self._offset(node.start_byte)
        # tree-sitter ends comments at \n only; to Python a lone \r ends the line too.
        text = self._text[start : self._offset(node.end_byte)]
        end = start + len(re.split(r"[\r\n]", text, maxsplit=1)[0])
        return (start, end) if offset < end else None

    @property
    def first_statement(self) -> int:
        """The offset of the first statement that is no docstring."""
        for index, node in enumerate(n for n in self._root.children if n.type != "comment"):
            docstring = index == 0 and node.type == "expression_statement" and node.children[0].type == "string"
            if not docstring:
                return self._offset(node.start_byte)
        return len(self._text)

    def _code_before(self, offset: int) -> int | None:
        """The offset of the last character of code before `offset` on its line."""
        while offset > 0:
            offset -= 1
            if self._text[offset] in "\r\n":
                return None
            if not self._text[offset].isspace():
                return offset
        return None

    def alone(self, offset: int) -> bool:
        """Whether nothing but blanks stands before `offset` on its line."""
        return self._code_before(offset) is None

    def lines_around(self, offset: int) -> tuple[int, int]:
        """The lines that a comment behind code speaks for."""
        line = self._source.position(offset).line
        code = self._code_before(offset)
        node = self._node(code) if code is not None else None
        while node is not None and not _is_statement(node):
            node = node.parent
        if node is None:
            return line, line
        first, last = self._header(node)
        return (first, last) if line in (first, last) else (line, line)

    def lines_below(self, offset: int) -> tuple[int, int]:
        """The lines that a comment alone on its line speaks for."""
        number = self._source.position(offset).line + 1
        while self._source.line(number).lstrip().startswith("#"):
            number += 1
        text = self._source.line(number)
        if not text.strip():
            return 0, 0
        begin = self._source.line_starts[number - 1] + len(text) - len(text.lstrip())
        node = self._node(begin)
        if node is None:
            return number, number
        start = node.start_byte
        parent = node.parent
        while parent is not None and parent.start_byte == start and parent.type not in _BLOCKS:
            node, parent = parent, parent.parent
        if node.start_byte != self._byte(begin):  # the middle of a string, or broken code
            return number, number
        return self._header(node)

    def _header(self, node: Node) -> tuple[int, int]:
        """The lines of a statement, for a compound one those of its header only."""
        first = self._line(node.start_byte)
        inner = node.child_by_field_name("definition") if node.type == "decorated_definition" else node
        body = next((child for child in (inner or node).children if child.type == "block"), None)
        if body is None or body.prev_sibling is None:
            return first, self._line(max(node.end_byte - 1, node.start_byte))
        colon = body.prev_sibling
        while colon.type == "comment" and colon.prev_sibling is not None:
            colon = colon.prev_sibling
        return first, self._line(colon.start_byte)


def _is_statement(node: Node) -> bool:
    return node.type in _CLAUSES or node.parent is None or node.parent.type in _BLOCKS
