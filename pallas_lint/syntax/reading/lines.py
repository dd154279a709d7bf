"""Logical lines: where statements may begin. tree-sitter reads a line's end as a space wherever it expects more."""

from __future__ import annotations

import re

# What a line's end may stand in, so that it ends no statement; and what opens and closes. A string that does not end
# goes on to the end of its line, or of the text: an attempt that fails would be made again at each quote in it.
_TOKEN = re.compile(
    rb'"""(?:"{0,2}(?:[^"\\]+|\\.?))*("{0,3})'
    rb"|'''(?:'{0,2}(?:[^'\\]+|\\.?))*('{0,3})"
    rb'|"(?:[^"\\\n]+|\\.?)*(")?'
    rb"|'(?:[^'\\\n]+|\\.?)*(')?"
    rb"|#[^\n]*|\\\r?\n|[(\[{]|[)\]}]|\n",
    re.DOTALL,
)
# Of one that ends elsewhere: a value in an f-string may go on in the next line. Its brackets count, but not in these.
_NO_CODE = re.compile(rb"""'[^'\n]*'|"[^"\n]*"|#[^\n]*""")
_BLANK_LINES = re.compile(rb"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)*([ \t]*)")
_OPENING, _CLOSING, _QUOTES, _NEWLINE = b"([{", b")]}", b"\"'", ord("\n")


def indents(text: bytes) -> dict[int, bytes]:
    """Where each logical line of a text begins, and the space before it."""
    found: dict[int, bytes] = {}
    depth = 0

    def line_from(at: int) -> None:
        blank = _BLANK_LINES.match(text, at)
        if blank is not None and blank.end() < len(text):
            found[blank.end()] = blank[1]

    line_from(0)
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first == _NEWLINE:
            if not depth:
                line_from(token.end())
        elif first in _OPENING:
            depth += 1
        elif first in _CLOSING:
            depth -= 1
        elif first in _QUOTES and token.lastindex is None:
            code = _NO_CODE.sub(b"", token[0][1:])
            depth += sum((byte in _OPENING) - (byte in _CLOSING) for byte in code)
    return found
