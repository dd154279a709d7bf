"""Markdown that clients show, made of text so that what stands in code or files adds no element of its own.

Only the functions here make `Markdown`, and only `content` gives it to a client: text of elsewhere has to go through
`text` or `code` on its way, which the type checker sees to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lsprotocol import types as lsp

# What begins markup within a line, and what GitHub's and VS Code's Markdown makes a link of by itself.
_MARKUP = re.compile(r"[\\`*_<&~|@]|\](?=[(\[:])|!(?=\[)|:(?=//)|(?<=[wW]{3})\.")
_URL = re.compile(r"https?://[^\s()<>\\]+")


class Markdown(str):
    """Markdown without any element that came with a text. Made by the functions of this module only."""

    __slots__ = ()


def text(words: str) -> Markdown:
    """`words` as prose in one line."""
    return Markdown(_MARKUP.sub(r"\\\g<0>", " ".join(words.split())))


def code(words: str) -> Markdown:
    """`words` as code in one line; nothing for nothing."""
    line = " ".join(words.split())
    if not line:
        return Markdown("")
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    space = " " if "`" in (line[0], line[-1]) else ""
    return Markdown(f"{fence}{space}{line}{space}{fence}")


def cell(words: str) -> Markdown:
    """`words` as code in a cell of a table."""
    # Which backslashes save a bar from ending the cell is not the same in all clients.
    return code(words.replace("|", "\N{BOX DRAWINGS LIGHT VERTICAL}"))


def link(words: str, url: str) -> Markdown:
    """A link; only the text where `url` is none of the web."""
    shown = text(words)
    return Markdown(f"[{shown}]({url})") if _URL.fullmatch(url) else shown


def own(words: str) -> Markdown:
    """Markdown that comes with the rules and the data of a package, and holds nothing of the user's files."""
    return Markdown(words)


def put(template: str, *parts: Markdown | int) -> Markdown:
    """A template, which is a constant, with parts put in for its braces."""
    return Markdown(template.format(*parts))


def joined(separator: str, parts: Iterable[Markdown]) -> Markdown:
    """The parts that are not empty, with a constant between them."""
    return Markdown(separator.join(part for part in parts if part))


def content(value: Markdown) -> lsp.MarkupContent:
    """What a client is given."""
    return lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=str(value))


def message_text(words: str) -> str:
    """`words` for `window/showMessage`, of which VS Code shows `[text](target)` as a link, that may be a command."""
    return words.replace("](", "] (")
