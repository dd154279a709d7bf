"""Patterns of .gitignore files and of settings, with git's meaning.

A pattern comes from an untrusted repository, so matching takes no longer than the length of the pattern times that
of the path, whatever both are: nothing that a star has settled is tried again once the next star has been reached.
Known difference to git: a pattern with `[[:digit:]]` or another named class matches nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Matcher = Callable[[str], object]  # true for the names of one level of a path that it matches

_WILD = frozenset("*?[\\")
_NOTHING = "(?!)"


@frozen
class _Pattern:
    ignores: bool  # False for one that begins with `!`
    folders_only: bool
    name: Matcher | None  # of a pattern without slashes: for the last part of a path
    levels: tuple[Matcher | None, ...] = ()  # of one with slashes: for each part, None for `**`


class Patterns:
    """Patterns in the order in which they were written: the last one that matches a path decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._last_first = [pattern for line in lines if (pattern := _pattern(line)) is not None][::-1]

    def __bool__(self) -> bool:
        return bool(self._last_first)

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether `path`, relative and with slashes, is left out itself; None where no pattern matches.

        The folders above it are not checked: paths in a folder that is left out are never queried.
        """
        name = path[path.rfind("/") + 1 :]
        parts: list[str] = []
        for pattern in self._last_first:
            if pattern.folders_only and not is_folder:
                continue
            if pattern.name is not None:
                if pattern.name(name):
                    return pattern.ignores
            else:
                parts = parts or path.split("/")
                if _consumed(pattern.levels, parts):
                    return pattern.ignores
        return None


def covers(pattern: str, path: str) -> bool:
    """Whether one pattern leaves out the file `path`, relative and with slashes, or a folder above it."""
    read, parts = _pattern(pattern), path.split("/")
    if read is None or not read.ignores:
        return False
    folders = parts[:-1]
    if read.name is not None:
        return any(map(read.name, folders if read.folders_only else parts))
    return (_consumed(read.levels, parts, first=True) or len(parts) + 1) <= len(folders if read.folders_only else parts)


@lru_cache(maxsize=256)  # those of settings are matched with one file after the other
def _pattern(line: str) -> _Pattern | None:
    """One line as git reads it; None for blank ones, comments and what git never matches."""
    text = line.rstrip(" ")
    if text != line and (len(text) - len(text.rstrip("\\"))) % 2:
        text += " "  # the blank behind a backslash counts
    if not text or text.startswith("#"):
        return None
    ignores = not text.startswith("!")
    text = text[not ignores :]
    folders_only = text.endswith("/")
    text = text[: len(text) - folders_only]
    if "/" not in text:
        return _Pattern(ignores, folders_only, _matcher(text)) if text else None
    levels = text.removeprefix("/").split("/")
    return _Pattern(ignores, folders_only, None, tuple(None if each == "**" else _matcher(each) for each in levels))


def _consumed(wanted: Sequence[Matcher | None], parts: Sequence[str], *, first: bool = False) -> int | None:
    """How many of `parts` match `wanted`: all or, with `first`, the fewest that do; None where none do.

    A `**` at the end stands for one part at least, elsewhere for any number.
    """
    at = part = 0
    many, since = -1, 0  # the last `**`, and the part behind those that it takes
    while part < len(parts):
        if at == len(wanted) and first:
            return part
        if at < len(wanted) and (matches := wanted[at]) is None:
            many, since, at = at, part, at + 1
            if at == len(wanted):
                return part + 1 if first else len(parts)
        elif at < len(wanted) and matches is not None and matches(parts[part]):
            at, part = at + 1, part + 1
        elif many >= 0:
            since += 1
            at, part = many + 1, since
        else:
            return None
    return part if at == len(wanted) else None


def _matcher(glob: str) -> Matcher:
    """A predicate: whether a name matches `glob`."""
    used = _WILD.intersection(glob)
    if not used:
        return glob.__eq__
    if used == {"*"}:
        first, *middle, last = glob.split("*")
        return partial(_in_order, [first, *filter(None, middle), last])
    return re.compile(_expression(glob), re.DOTALL).match


def _in_order(pieces: Sequence[str], name: str) -> bool:
    """Whether `name` is these pieces with anything in between."""
    first, *middle, last = pieces
    at, end = len(first), len(name) - len(last)
    if at > end or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in middle:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def _expression(glob: str) -> str:
    """`glob` as a regular expression in which each star settles for the first place where what follows it is found."""
    pieces = [""]  # between the stars
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            if len(pieces) == 1 or pieces[-1]:
                pieces.append("")
        elif char == "?":
            pieces[-1] += "."
        elif char == "[":
            chars, at = _class(glob, at)
            if not at:
                return _NOTHING
            pieces[-1] += chars
        elif char != "\\":
            pieces[-1] += re.escape(char)
        elif at == len(glob):
            return _NOTHING
        else:
            pieces[-1] += re.escape(glob[at])
            at += 1
    first, *others = pieces
    # What stands in a look-ahead is never tried again: an atomic group, which Python has from 3.11.
    found = [f"(?=(?P<_{number}>.*?{piece}))(?P=_{number})" for number, piece in enumerate(others[:-1])]
    return "".join((first, *found, *(f".*{piece}" for piece in others[-1:]), r"\Z"))


def _class(glob: str, at: int) -> tuple[str, int]:
    """The class of characters that is open at `at`, and where it ends: 0 where it does not or cannot be read."""
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    first, chars, before = at, "", ""  # before: what may begin a range
    while at < len(glob):
        char = glob[at]
        if char == "]" and at > first:
            if negated:
                return f"[^{chars}]" if chars else ".", at + 1
            return f"[{chars}]" if chars else _NOTHING, at + 1
        if glob.startswith("[:", at):
            break
        is_range = char == "-" and before != "" and glob[at + 1 : at + 2] not in ("", "]")
        at += is_range
        at += glob[at] == "\\"
        if at >= len(glob):
            break
        char = glob[at]
        if is_range:
            chars += f"{re.escape(before)}-{re.escape(char)}" if before <= char else ""
            before = ""
        else:
            chars += re.escape(char)
            before = char
        at += 1
    return "", 0
