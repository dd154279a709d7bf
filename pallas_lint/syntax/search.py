"""Nodes of a tree-sitter tree: those that contain given words, far fewer than all; and all below one."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter


def holding(root: tree_sitter.Node, *words: bytes) -> Iterator[tree_sitter.Node]:
    """Every named node with one of the words in its text, outer ones first, in order of position."""
    text = root.text or b""
    marks = sorted(root.start_byte + place for word in words for place in _places(text, word))
    stack = [root] if marks else []
    while stack:
        node = stack.pop()
        at = bisect_left(marks, node.start_byte)
        if at < len(marks) and marks[at] < node.end_byte:
            yield node
            stack.extend(reversed(node.named_children))


def descendants(node: tree_sitter.Node) -> Iterator[tree_sitter.Node]:
    """Every named node below a node, outer ones first, in order of position."""
    stack = list(reversed(node.named_children))
    while stack:
        below = stack.pop()
        yield below
        stack.extend(reversed(below.named_children))


def _places(text: bytes, word: bytes) -> Iterator[int]:
    # Quicker than a regular expression with alternatives, by the order of ten.
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + 1)
