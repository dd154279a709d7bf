"""Walking libcst nodes without white space, and without the visitor that libcst's own `children` runs for each."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import TYPE_CHECKING

import libcst as cst

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPACE = ("whitespace", "leading_", "lines_after", "trailing_", "header", "footer", "lpar", "rpar", "newline")


@cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """The fields of a kind of node that may hold nodes other than space and parentheses."""
    return tuple(found.name for found in dataclasses.fields(kind) if not found.name.startswith(_SPACE))


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly below, in the order of its fields; those of white space and parentheses are left out."""
    found: list[cst.CSTNode] = []
    for name in _fields(node.__class__):
        value = getattr(node, name)
        if value.__class__ in (list, tuple):
            found.extend(value)
        elif isinstance(value, cst.CSTNode):
            found.append(value)
    return found


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and all below it, in no particular order."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(children(current))
