"""Text that comes from code, or from what it printed, in Markdown that clients show: no link or picture of its own."""

from __future__ import annotations

import re


def plain(text: str) -> str:
    """`text` as prose in one line."""
    return re.sub(r"[\\`*_<&~|]|\](?=[(\[:])|!(?=\[)", r"\\\g<0>", " ".join(text.split()))


def code(text: str) -> str:
    """`text` as code in one line."""
    return f"`{' '.join(text.split()).replace('`', chr(39))}`"
