"""Searches in long texts, and parts of regular expressions for them.

Where every alternative begins with a letter, Python skips to these letters, in a sixth of the time that it takes to try
`\\b` or `(?i:` at each character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


def matches_at_lines(pattern: re.Pattern[str], text: str, word: str) -> Iterator[re.Match[str]]:
    """Matches of a pattern at the beginnings of lines, where its first line contains a word: quicker than `^`."""
    at = text.find(word)
    while at >= 0:
        match = pattern.match(text, text.rfind("\n", 0, at) + 1)
        if match is not None:
            yield match
        end = text.find("\n", at if match is None else match.end())
        at = text.find(word, end) if end >= 0 else -1


def starting_word(word: str) -> str:
    """Matches a text where a word begins with it: `\\bword`."""
    literal = re.escape(word)
    return rf"{literal}(?<!\w{literal})"


def in_any_case(text: str, pattern: str) -> str:
    """Matches a text, and a pattern behind it, whatever the case: `(?i:text pattern)`."""
    rest = rf"(?i:{re.escape(text[1:])}{pattern})"
    return f"{text[0].lower()}{rest}|{text[0].upper()}{rest}"
