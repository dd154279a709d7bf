"""Calls around a cursor in unfinished text: open brackets, unterminated strings.

A parser puts half a statement into one error node or another. What stands between brackets can be read from the text
alone, from the beginning of the statement at the top of the file to the cursor, and that is all that is wanted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.records import define, field, frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Position
    from pallas_lint.text.source import Source

_MAX_LINES = 400  # before and after the cursor
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)|(?P<quote>"{3}|'{3}|["'])
    |(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)|(?P<lambda>\blambda\b)|(?P<colon>:)
    |\n[ \t]*(?P<statement>return|def|class|import|from|while|@)\b""",
    re.VERBOSE,
)
_KEYWORD = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)")
_BEGINS = re.compile(r"[^\s#)\]}]")


@frozen
class Argument:
    """One argument of a call, as far as it is written: `text` without the keyword."""

    keyword: str | None
    text: str


@define(eq=False)
class Bracket:
    """A bracket with what stands in it; `end` None while it is open. `callee`: the dotted name that is called."""

    opening: str
    callee: str | None
    start: int  # offset behind the bracket, in the text that was read
    end: int | None = None
    _commas: list[int] = field(factory=list)
    _in_lambda: bool = False  # whether its parameters are being read, whose commas separate no arguments

    def arguments(self, text: str, end: int | None = None) -> list[Argument]:
        """The arguments in it, up to `end` where it is open; the last is the one at the cursor."""
        last = self.end if self.end is not None else len(text) if end is None else end
        cuts = [at for at in self._commas if at < last]
        starts = (self.start, *(at + 1 for at in cuts))
        return [_argument(text[first:until]) for first, until in zip(starts, (*cuts, last), strict=True)]

    def read(self, kind: str, at: int) -> None:
        """What stands directly in it."""
        if kind == "comma" and not self._in_lambda:
            self._commas.append(at)
        elif kind != "comma":
            self._in_lambda = kind == "lambda"

    def holds(self, offset: int) -> bool:
        return self.start <= offset and (self.end is None or offset <= self.end)


def _argument(part: str) -> Argument:
    keyword = _KEYWORD.match(part)
    return Argument(keyword[1], part[keyword.end() :]) if keyword is not None else Argument(None, part)


@frozen
class Surroundings:
    """The statement around a cursor: its text, the brackets in it, and what the cursor stands in."""

    text: str
    cursor: int  # offset in it
    brackets: tuple[Bracket, ...]  # all of the statement, in order
    around: tuple[Bracket, ...]  # those that are open at the cursor, the innermost last
    quoted: str | None  # what is written of the string at the cursor; None where it stands in none
    in_comment: bool

    @property
    def before(self) -> str:
        return self.text[: self.cursor]


def surroundings(source: Source, cursor: Position) -> Surroundings:
    """What stands around a cursor."""
    first, last = _statement(source, cursor.line)
    text = "\n".join(source.line(number) for number in range(first, last + 1))
    at = sum(len(source.line(number)) + 1 for number in range(first, cursor.line)) + cursor.column - 1
    around, _, quoted, in_comment = _read(text[:at])
    _, every, _, _ = _read(text)
    return Surroundings(text, at, tuple(every), tuple(around), quoted, in_comment)


def items(text: str) -> list[str] | None:
    """What stands in a tuple or a list that is all of a text, or is being written; None for anything else."""
    stripped = text.strip()
    if stripped[:1] not in ("(", "["):
        return None
    _, brackets, _, _ = _read(stripped)
    outer = brackets[0]
    if outer.end is not None and outer.end != len(stripped) - 1:
        return None
    found = [each.text.strip() for each in outer.arguments(stripped)]
    if stripped[0] == "(" and outer.end is not None and len(found) == 1 and found[0]:
        return None  # in brackets, no tuple
    return found[:-1] if not found[-1] else found


def assigned(text: str, name: str) -> Iterator[str]:
    """What is assigned to a name in a text, as far as it stands on the same line."""
    for line in text.splitlines():
        left, sign, right = line.partition("=")
        if sign and left.strip() == name and not right.startswith("="):
            yield right.strip()


def _statement(source: Source, line: int) -> tuple[int, int]:
    """The lines of the statement at the top of the file in which a line is."""
    first = next(
        (at for at in range(line, max(line - _MAX_LINES, 1), -1) if _BEGINS.match(source.line(at))),
        max(line - _MAX_LINES, 1),
    )
    until = min(line + _MAX_LINES, source.line_count)
    last = next((at - 1 for at in range(line + 1, until + 1) if _BEGINS.match(source.line(at))), until)
    return first, last


def _read(text: str) -> tuple[list[Bracket], list[Bracket], str | None, bool]:
    """The brackets that are open at the end of a text, all brackets, the string at its end, whether in a comment."""
    stack: list[Bracket] = []
    every: list[Bracket] = []
    quoted: str | None = None
    in_comment = False
    after = 0
    while (token := _TOKEN.search(text, after)) is not None:
        at, after = token.span()
        if token["quote"]:
            begins, after, closed = after, *_string_end(text, after, token["quote"])
            quoted = text[begins:] if after == len(text) and not closed else None
        elif token["open"]:
            name = _callee(text[_line_of(text, at) : at]) if token["open"] == "(" else None
            stack.append(Bracket(token["open"], name, at + 1))
            every.append(stack[-1])
        elif token["close"] and stack:
            stack.pop().end = at
        elif token.lastgroup in ("comma", "lambda", "colon") and stack:
            stack[-1].read(token.lastgroup, at)
        elif token["statement"]:
            stack.clear()  # a bracket above was left open
        elif token["comment"]:
            in_comment = after == len(text)
    return stack, every, quoted, in_comment


def word_at_end(text: str, more: str = "") -> str:
    """The letters, digits and underscores that a text ends with, and characters that count as well."""
    at = len(text)
    while at and (text[at - 1].isalnum() or text[at - 1] in "_" + more):
        at -= 1
    return text[at:]


def _callee(before: str) -> str | None:
    """The dotted name that a line ends with, without its spaces; None where it ends with something else."""
    names: list[str] = []
    rest = before.rstrip(" \t")
    while (word := word_at_end(rest)) and not word[0].isdigit():
        names.append(word)
        rest = rest[: -len(word)].rstrip(" \t")
        if not rest.endswith("."):
            break
        rest = rest[:-1].rstrip(" \t")
    return ".".join(reversed(names)) or None


def _line_of(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _string_end(text: str, at: int, quote: str) -> tuple[int, bool]:
    """Where a string ends that begins at `at`, behind its quote, and whether by a quote; else by the line or text."""
    while at < len(text):
        if text.startswith(quote, at):
            return at + len(quote), True
        if text[at] == "\n" and len(quote) == 1:
            return at, False
        at += 2 if text[at] == "\\" else 1
    return len(text), False
