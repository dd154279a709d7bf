"""TOML, which several ask for of the same file."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError


@lru_cache(maxsize=8)
def loads(text: str) -> dict[str, Any]:
    """The document, which nobody changes. Raises TOMLDecodeError; at Python's limits ValueError or RecursionError."""
    return tomllib.loads(text)


def located(error: TOMLDecodeError, text: str) -> tuple[str, int]:
    """The message of an error that `loads` raised, without the place that it ends with, and the line."""
    message, mark, place = str(error).rpartition(" (at ")
    if not mark:
        message = place
    line = place.removeprefix("line ").partition(",")[0]
    return f"{message[:1].lower()}{message[1:]}", int(line) if line.isdecimal() else text.count("\n") + 1
