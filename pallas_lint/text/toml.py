"""TOML documents, parsed once and cached."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError

_MAX_PARTS = 64  # of a dotted key: the time that tomllib takes grows with the square of their number
_PART = r"""(?:[\w-]+|"(?:[^"\\\n]|\\.?)*"?|'[^'\n]*'?)"""
# Multi-line strings and comments are passed over whole; a string that does not end takes the rest.
_TOKEN = re.compile(
    r""""{3}(?:"{0,2}(?:[^"\\]|\\[\s\S]?))*"{0,3}|'{3}(?:'{0,2}[^'])*'{0,3}|#[^\n]*|"""
    rf"(?P<key>{_PART}(?:[ \t]*\.[ \t]*{_PART})*)"
)


class KeyTooLong(TOMLDecodeError):
    """A dotted key has more parts than any settings have."""

    def __init__(self, line: int) -> None:
        ValueError.__init__(self, f"A key has more than {_MAX_PARTS} parts (at line {line}, column 1)")


@lru_cache(maxsize=8)
def loads(text: str) -> dict[str, Any]:
    """The document, not to be changed. Raises TOMLDecodeError; at Python's limits ValueError or RecursionError."""
    if text.count(".") >= _MAX_PARTS:
        _check_keys(text)
    return tomllib.loads(text)


def located(error: TOMLDecodeError, text: str) -> tuple[str, int]:
    """The message of an error that `loads` raised, without the place that it ends with, and the line."""
    message, mark, place = str(error).rpartition(" (at ")
    if not mark:
        message = place
    line = place.removeprefix("line ").partition(",")[0]
    return f"{message[:1].lower()}{message[1:]}", int(line) if line.isdecimal() else text.count("\n") + 1


def _check_keys(text: str) -> None:
    for token in _TOKEN.finditer(text):
        key = token["key"]
        if key and key.count(".") >= _MAX_PARTS and len(re.findall(_PART, key)) > _MAX_PARTS:
            raise KeyTooLong(text.count("\n", 0, token.start()) + 1)
