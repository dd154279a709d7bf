"""LSP's positions by the letter of the specification: offsets are counted by encoding the text."""

from __future__ import annotations

import re

from hypothesis import strategies as st

ENCODINGS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
LINE_END = re.compile("\r\n|\n|\r")

# What lines are made of, and what only looks like the end of one.
PIECES = (
    "x",
    "é",
    "🟦",
    "e\u0301",
    "👩‍🚀",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\u2028",
    "\x0c",
    "\x85",
    "\x1c",
    "  ",
    "def f():",
)
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join)


def units(text: str, encoding: str) -> int:
    """How many units of the client's encoding `text` takes."""
    codec, width = ENCODINGS[encoding]
    return len(text.encode(codec)) // width


def position(text: str, offset: int, encoding: str) -> dict[str, int]:
    """The place before `text[offset]`, which may not lie between `\\r` and `\\n`."""
    before = text[:offset]
    ends = list(LINE_END.finditer(before))
    start = ends[-1].end() if ends else 0
    return {"line": len(ends), "character": units(before[start:], encoding)}


def offsets(text: str) -> list[int]:
    """Every offset that a client can name."""
    return [at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n" or at == 0]
