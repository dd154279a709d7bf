"""A local variable that is assigned once, and everything that reads it: what a rewrite of both has to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst
from attrs import frozen

from pallas_lint.syntax.descent import children

if TYPE_CHECKING:
    from pallas_lint.syntax.piece import Site


@frozen(eq=False)
class Definition:
    """`name = value`, the only assignment of a local variable. `reads` are (the name, the node around it)."""

    name: str
    value: cst.BaseExpression
    reads: tuple[tuple[cst.Name, cst.CSTNode], ...]


def sole_definition(read: cst.Name, site: Site) -> Definition | None:
    """The only assignment of the variable that is read; None where it is bound elsewhere or otherwise too."""
    function = _function_around(read, site)
    if function is None:
        return None
    values: list[cst.BaseExpression] = []
    reads: list[tuple[cst.Name, cst.CSTNode]] = []
    others = 0
    stack: list[cst.CSTNode] = [function]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Assign) and len(node.targets) == 1 and _is_name(node.targets[0].target, read.value):
            values.append(node.value)
            stack.append(node.value)
            continue
        if isinstance(node, cst.Attribute):
            stack.append(node.value)
            if _is_name(node.value, read.value):
                reads.append((node.value, node))  # type: ignore[arg-type]
                stack.pop()
            continue
        if isinstance(node, cst.Param | cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.NamedExpr | cst.For):
            target = getattr(node, "target", None) or getattr(node, "name", None)
            others += _mentions(target, read.value)
        for child in children(node):
            if isinstance(child, cst.Name) and child.value == read.value:
                if not (isinstance(node, cst.Arg) and child is node.keyword):
                    reads.append((child, node))
            else:
                stack.append(child)
    if len(values) != 1 or others:
        return None
    return Definition(read.value, values[0], tuple(reads))


def _function_around(node: cst.CSTNode, site: Site) -> cst.FunctionDef | None:
    module = site.piece.module
    stack: list[tuple[cst.CSTNode, cst.FunctionDef | None]] = [] if module is None else [(module, None)]
    while stack:
        current, function = stack.pop()
        if current is node:
            return function
        inside = current if isinstance(current, cst.FunctionDef) else function
        stack.extend((child, inside) for child in children(current))
    return None


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _mentions(node: cst.CSTNode | None, name: str) -> int:
    if node is None:
        return 0
    stack, count = [node], 0
    while stack:
        current = stack.pop()
        count += _is_name(current, name)
        if not isinstance(current, cst.Subscript | cst.Attribute):
            stack.extend(children(current))
    return count
