"""IPython syntax in cells, masked so that a cell parses: a mask is as long as the text it replaces.

Magics (`%x`, `%%x`), shell commands (`!x`, `y = !x`), help (`x?`) and automatic calls (`/f x`) become names made of
underscores, which no code binds: their values are unknown.
"""

from __future__ import annotations

import re

# Cell magics whose cell runs as Python in the notebook's own namespace. Any other cell is in another language, runs in
# another process or is only written to a file.
_RUN_HERE = frozenset(
    ("capture", "debug", "ipytest", "memit", "prun", "pyinstrument", "scalene", "snakeviz", "time", "timeit")
)
_CELL_MAGIC = re.compile(r"\s*%%(\S*)[^\r\n]*")
_SUSPECT = re.compile(r"^[ \t]*[%!?,;/]|\?[ \t]*$|=[ \t]*[%!]", re.MULTILINE)
_BLANKS = re.compile(r"[ \t]*")
_COMMAND = re.compile(r"[%!?,;/](?:\\\r?\n|[^\r\n])*")
_HELP = re.compile(r"[%\w.*\[\]]+[ \t]*\?\??[ \t]*(?=[\r\n]|\Z)")
# `%time f(x)` runs f(x) as any other statement; a compound statement cannot stand behind a semicolon.
_TIMED = re.compile(
    r"%(?:time|timeit|prun|memit)(?:[ \t]+-\w(?:[ \t]*\d+)?)*[ \t]+"
    r"(?=[^\s%!\\-])(?!(?:for|while|with|if|try|def|class|async|match)\b)"
)
# A string that does not end goes on up to the end of the text, or of the line: an attempt that fails is made again for
# each quote in it.
# A string that does not end goes on up to the end of its line, or of the text if it has three quotes.
_TOKEN = re.compile(
    r"""
    \#[^\r\n]*
    | '''(?:'{0,2}(?:\\.?|[^\\']))*'{0,3} | \"\"\"(?:\"{0,2}(?:\\.?|[^\\"]))*\"{0,3}
    | '(?:\\.?|[^\\'\r\n])*'? | "(?:\\.?|[^\\"\r\n])*"?
    | (?P<open>[(\[{]) | (?P<close>[)\]}])
    | \\(?:\r\n|\n|\r)
    | (?P<newline>\r\n|\n|\r)
    | =[ \t]*(?P<assigned>[%!](?!=)(?:\\\r?\n|[^\r\n])*)
    """,
    re.VERBOSE | re.DOTALL,
)


def masked(text: str) -> str:
    """The Python in a cell, everything else hidden; blank for a cell in another language."""
    magic = _CELL_MAGIC.match(text)
    if magic is not None:
        if magic[1] not in _RUN_HERE:
            return blank(text)
        return blank(magic[0]) + _masked_lines(text[magic.end() :])
    return _masked_lines(text)


def blank(text: str) -> str:
    """Blanks where `text` has characters, and its line ends."""
    return re.sub(r"[^\r\n]", " ", text)


def _masked_lines(text: str) -> str:
    if not _SUSPECT.search(text):
        return text
    parts: list[str] = []
    done = at = 0
    while at < len(text):
        start = _end_of(_BLANKS, text, at)
        hidden = _COMMAND.match(text, start) or _HELP.match(text, start)
        if hidden is None:
            assigned, at = _rest_of_statement(text, start)
            for first, last in assigned:
                parts += (text[done:first], _mask(text[first:last]))
                done = last
            continue
        timed = _TIMED.match(text, start)
        if timed is not None:
            parts += (text[done:start], "_" * (timed.end() - start - 1), ";")
            done = timed.end()
            _, at = _rest_of_statement(text, done)
            continue
        parts += (text[done:start], _mask(hidden[0]))
        done = at = hidden.end()
        at = _end_of(re.compile(r"[\r\n]*"), text, at)
    return "".join((*parts, text[done:]))


def _rest_of_statement(text: str, at: int) -> tuple[list[tuple[int, int]], int]:
    """What is assigned from a magic or the shell up to the end of the logical line, and where the next one begins."""
    assigned = []
    depth = 0
    for token in _TOKEN.finditer(text, at):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth = max(depth - 1, 0)
        elif token["assigned"] and not depth:
            assigned.append(token.span("assigned"))
        elif token["newline"] and not depth:
            return assigned, token.end()
    return assigned, len(text)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else match.end()


def _mask(text: str) -> str:
    """A name as long as the first line of `text`, and blanks for the lines that continue it."""
    first, newline, rest = re.match(r"([^\r\n]*)([\r\n]*)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    return "_" * len(first) + newline + blank(rest)
