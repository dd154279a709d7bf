"""Searches in long texts, and parts of regular expressions for them.

Where every alternative begins with a letter, Python skips to these letters, in a sixth of the time that it takes to try
`\\b` or `(?i:` at each character.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Match = Callable[[str, int], re.Match[str] | None]


def statements_with(word: str, match: Match, text: str, *, indented: bool = False) -> Iterator[re.Match[str]]:
    """Matches where the code of a line begins, of lines that contain a word: quicker than `^[ \t]*`.

    `match` is the method of a pattern. `indented`: only on lines that begin with blanks.
    """
    at = text.find(word)
    while at >= 0:
        line = text.rfind("\n", 0, at) + 1
        begin = at - len(text[line:at].lstrip(" \t"))
        found = match(text, begin) if begin > line or not indented else None
        if found is not None:
            yield found
        end = text.find("\n", at if found is None else found.end())
        at = text.find(word, end) if end >= 0 else -1


def starting_word(word: str) -> str:
    """Matches a text where a word begins with it: `\\bword`."""
    literal = re.escape(word)
    return rf"{literal}(?<!\w{literal})"


def in_any_case(text: str, pattern: str) -> str:
    """Matches a text, and a pattern behind it, whatever the case: `(?i:text pattern)`."""
    rest = rf"(?i:{re.escape(text[1:])}{pattern})"
    return f"{text[0].lower()}{rest}|{text[0].upper()}{rest}"
