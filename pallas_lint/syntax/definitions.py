"""Local variables that are assigned once, with all their reads, for rewrites of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.records import frozen
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.syntax.piece import Site


@frozen(eq=False)
class Definition:
    """`name = value`, the only assignment of a local variable. `reads` are (the name, the node around it)."""

    name: str
    value: nodes.BaseExpression
    reads: tuple[tuple[nodes.Name, nodes.Node], ...]


def sole_definition(read: nodes.Name, site: Site) -> Definition | None:
    """The only assignment of the variable that is read; None where it is bound elsewhere or otherwise too."""
    function = _function_around(read, site)
    if function is None:
        return None
    values: list[nodes.BaseExpression] = []
    reads: list[tuple[nodes.Name, nodes.Node]] = []
    others = 0
    stack: list[nodes.Node] = [function]
    while stack:
        node = stack.pop()
        if (
            isinstance(node, nodes.Assign)
            and len(node.targets) == 1
            and nodes.is_name(node.targets[0].target, read.value)
        ):
            values.append(node.value)
            stack.append(node.value)
            continue
        if isinstance(node, nodes.Attribute):
            stack.append(node.value)
            if nodes.is_name(node.value, read.value):
                reads.append((node.value, node))
                stack.pop()
            continue
        if isinstance(
            node, nodes.Param | nodes.AssignTarget | nodes.AugAssign | nodes.AnnAssign | nodes.NamedExpr | nodes.For
        ):
            target = getattr(node, "target", None) or getattr(node, "name", None)
            others += _mentions(target, read.value)
        for child in node.children:
            if nodes.is_name(child, read.value):
                if not (isinstance(node, nodes.Arg) and child is node.keyword):
                    reads.append((child, node))
            else:
                stack.append(child)
    if len(values) != 1 or others:
        return None
    return Definition(read.value, values[0], tuple(reads))


def _function_around(node: nodes.Node, site: Site) -> nodes.FunctionDef | None:
    parents = site.piece.parents
    around = parents.get(node)
    while around is not None and not isinstance(around, nodes.FunctionDef):
        around = parents.get(around)
    return around


def _mentions(node: nodes.Node | None, name: str) -> int:
    if node is None:
        return 0
    stack, count = [node], 0
    while stack:
        current = stack.pop()
        count += nodes.is_name(current, name)
        if not isinstance(current, nodes.Subscript | nodes.Attribute):
            stack.extend(current.children)
    return count
