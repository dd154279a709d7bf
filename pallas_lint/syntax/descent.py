"""Traversal of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.syntax import nodes


def walk(node: nodes.Node) -> Iterator[nodes.Node]:
    """The node and all below it, in no particular order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(current.children)
