"""Colours and columns of a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TextIO

from pallas_lint.finding import Severity
from pallas_lint.records import frozen

TAB = 4
_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}
_LINKING = ("iTerm.app", "WezTerm", "ghostty", "Hyper")
_LINKING_TOO = frozenset({"KITTY_WINDOW_ID", "KONSOLE_VERSION", "WT_SESSION", "ALACRITTY_WINDOW_ID"})
_ZERO_WIDTH = ("Mn", "Me", "Cf")
# GitHub takes `##[error]text` for a command wherever it stands in a line: its bracket is shown as another one.
_COMMAND, _NO_COMMAND = "##[", "##\u2045"


@frozen
class Style:
    """Marks up text with ANSI colours, or leaves it alone."""

    colour: bool = False
    links: bool = False  # files can be opened from the terminal

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text

    def severity(self, severity: Severity, text: str) -> str:
        return self._wrap(_COLOURS[severity], text)

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)

    def path(self, text: str) -> str:
        return self._wrap("1", text)

    def good(self, text: str) -> str:
        return self._wrap("1;32", text)

    def added(self, text: str) -> str:
        return self._wrap("32", text)

    def removed(self, text: str) -> str:
        return self._wrap("31", text)

    def link(self, text: str, path: str) -> str:
        """`text` that opens a file, where terminals can."""
        if not self.links:
            return text
        from pathlib import Path

        return _linked(text, Path(path).absolute().as_uri())

    def page(self, text: str, address: str | None) -> str:
        """`text` that opens a page of the documentation, where terminals can."""
        wanted = self.links and address is not None and address.startswith("https://") and address.isprintable()
        return _linked(text, address or "") if wanted else text

    def place(self, text: str) -> str:
        return self._wrap("36", text)


def _linked(text: str, address: str) -> str:
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def use_colour(choice: str, stream: TextIO) -> bool:
    """Whether `--color choice` means colours on `stream`.

    `auto` follows NO_COLOR, FORCE_COLOR, TERM and whether the stream is a terminal.
    """
    if choice != "auto":
        wanted = choice == "always"
    elif os.environ.get("NO_COLOR"):
        wanted = False
    elif os.environ.get("FORCE_COLOR"):
        wanted = True
    else:
        wanted = os.environ.get("TERM") != "dumb" and stream.isatty()
    if wanted and os.name == "nt":
        os.system("")  # the documented way to make an old Windows console understand ANSI codes
    return wanted


def can_link(stream: TextIO) -> bool:
    """Whether the terminal that `stream` is shows links (OSC 8); only those known to are believed to.

    Editors' terminals are not among them: they find `path:line:column` by themselves, and open it at that place.
    """
    if not stream.isatty() or os.environ.get("CI") or os.environ.get("TERM_PROGRAM") == "vscode":
        return False
    if os.environ.get("TERM_PROGRAM") in _LINKING or _LINKING_TOO & os.environ.keys():
        return True
    vte = os.environ.get("VTE_VERSION", "")
    return vte.isdecimal() and int(vte) >= 5000


def visible(text: str) -> str:
    """`text` without characters that would move the cursor, colour or reorder the terminal, one for one."""
    text = text.replace(_COMMAND, _NO_COMMAND)
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def visible_file(path: str) -> str:
    """A file's path as it may begin a line, where `::` is a command to GitHub and a dash begins an option."""
    shown = visible(path)
    return f"./{shown}" if shown.startswith(("-", ":", "#")) else shown


def _visible(char: str) -> str:
    if char == "\x7f":
        return "\u2421"
    if char < " ":
        return chr(0x2400 + ord(char))  # the picture of the control character
    if char.isprintable() or _category(char) in ("Mn", "Me"):
        return char
    # Joiners belong to emoji and scripts; all else that does not print may reorder or break the line.
    return char if char in "\u200c\u200d" or (char.isspace() and char in "\u3000\u00a0\u2003") else "\ufffd"


def width(char: str) -> int:
    """How many columns a terminal gives to `char`."""
    if char < "\x7f":
        return 1
    import unicodedata

    if unicodedata.category(char) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cells(text: str) -> Iterator[tuple[str, int]]:
    """Each character of a source line as shown, with its width; a tab becomes blanks to the next stop."""
    column = 0
    for char in text.replace(_COMMAND, _NO_COMMAND):
        if char == "\t":
            blanks = TAB - column % TAB
            yield " " * blanks, blanks
            column += blanks
            continue
        shown = _visible(char) if not char.isascii() or not char.isprintable() else char
        shown_width = width(shown)
        yield shown, shown_width
        column += shown_width


def text_width(text: str) -> int:
    """The columns `text` takes."""
    return len(text) if text.isascii() else sum(map(width, text))


def _category(char: str) -> str:
    import unicodedata

    return unicodedata.category(char)
