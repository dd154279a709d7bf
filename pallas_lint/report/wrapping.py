"""Text that fits the width of a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TextIO

from pallas_lint.report.style import text_width

_MIN_WIDTH = 40  # columns: what claims to be narrower is not believed
_BLANK = re.compile(r"(?<!\d) | (?!(?:[nµm]?s|[kKMG]i?B)\b)")  # where a line may end: not before a unit
_MARKUP = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")


def width_of(stream: TextIO) -> int | None:
    """The columns of the terminal that `stream` writes to; None for a file or a pipe.

    COLUMNS goes before the terminal's own, as everywhere.
    """
    setting = os.environ.get("COLUMNS", "")
    if setting.isdecimal() and int(setting) > 0:
        return max(int(setting), _MIN_WIDTH)
    try:
        columns = os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        columns = 0
    return max(columns, _MIN_WIDTH) if columns else None


def wrapped(text: str, width: int | None, first: int = 0, indent: int = 0) -> Iterator[str]:
    """The lines of `text` in so many columns, broken at blanks; what has none is not broken.

    `first`: columns that are taken in the first line; the others begin behind `indent` blanks.
    """
    if width is None or first + columns_of(text) <= width:
        yield text
        return
    line: list[str] = []
    column = first
    for word in _BLANK.split(text):
        taken = columns_of(word)
        if line and column + 1 + taken > width:
            yield " ".join(line)
            line, column = [" " * indent + word], indent + taken
        else:
            column += taken + bool(line)
            line.append(word)
    yield " ".join(line)


def columns_of(text: str) -> int:
    """The columns that `text` takes, colours and links left out of account."""
    return text_width(_MARKUP.sub("", text) if "\x1b" in text else text)
