"""Text that comes from code, or from what it printed, in Markdown that clients show: no link or picture of its own."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"[\\`*_<&~|@]|\](?=[(\[:])|!(?=\[)|:(?=//)|(?<=www)\.", re.IGNORECASE)


def plain(text: str) -> str:
    """`text` as prose in one line. Addresses in it are no links either: GitHub's Markdown makes some of bare ones."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()))


def code(text: str) -> str:
    """`text` as code in one line."""
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"
