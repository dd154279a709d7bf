"""Nodes of a tree-sitter tree that hold certain words: far fewer than all."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    import tree_sitter


def holding(root: tree_sitter.Node, words: re.Pattern[bytes]) -> Iterator[tree_sitter.Node]:
    """Every named node with a match in its text, outer ones first, in order of position."""
    start = root.start_byte
    marks = [start + found.start() for found in words.finditer(root.text or b"")]
    stack = [root]
    while stack:
        node = stack.pop()
        at = bisect_left(marks, node.start_byte)
        if at < len(marks) and marks[at] < node.end_byte:
            yield node
            stack.extend(reversed(node.named_children))
