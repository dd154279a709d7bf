"""tree-sitter's parser for Python, and the bytes that it is given."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter


@lru_cache(maxsize=1)
def parser() -> tree_sitter.Parser:
    """tree-sitter's for Python."""
    import tree_sitter
    import tree_sitter_python

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))


def parsed_bytes(text: str) -> bytes:
    """What is parsed of a text: the offsets are those of its UTF-8."""
    if "\r" in text:
        # tree-sitter counts lines by \n only; the replacement keeps every offset.
        text = re.sub(r"\r(?!\n)", "\n", text)
    return text.encode("utf-8", "surrogatepass")
