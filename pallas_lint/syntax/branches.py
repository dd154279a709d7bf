"""Conditions of a node in the text: the branches around it, and early exits before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.records import frozen
from pallas_lint.syntax.bindings import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import tree_sitter

_LEAVING = frozenset({"return_statement", "raise_statement", "continue_statement", "break_statement"})


@frozen
class Branch:
    """A condition on the way to a use, as text; `negated`: the use is reached where it is false."""

    condition: str
    negated: bool


def same(first: tree_sitter.Node | None, second: tree_sitter.Node) -> bool:
    return first is not None and first.id == second.id


def branches_of(outer: tree_sitter.Node, child: tree_sitter.Node) -> Iterator[Branch]:
    """The conditions under which `child` of a branching node is reached; none where it is the condition itself."""
    if outer.type in ("if_statement", "elif_clause"):
        condition = outer.child_by_field_name("condition")
        if condition is None or same(condition, child):
            return
        yield Branch(text_of(condition), not same(outer.child_by_field_name("consequence"), child))
        for other in outer.children_by_field_name("alternative"):
            if other.type == "elif_clause" and other.start_byte < child.start_byte:
                yield Branch(text_of(other.child_by_field_name("condition")), negated=True)
    elif outer.type == "conditional_expression" and len(outer.named_children) == 3:
        body, condition, _ = outer.named_children
        if not same(condition, child):
            yield Branch(text_of(condition), not same(body, child))
    elif outer.type == "boolean_operator":
        left, operator = outer.child_by_field_name("left"), outer.child_by_field_name("operator")
        if left is not None and operator is not None and not same(left, child):
            yield Branch(text_of(left), operator.type == "or")


def exits_of(statement: tree_sitter.Node) -> Iterator[Branch]:
    """The condition of an `if` whose body certainly leaves the block (without `else`, which may not)."""
    if statement.type != "if_statement" or statement.child_by_field_name("alternative") is not None:
        return
    body, condition = statement.child_by_field_name("consequence"), statement.child_by_field_name("condition")
    if body is None or condition is None or not body.named_children:
        return
    if body.named_children[-1].type in _LEAVING:
        yield Branch(text_of(condition), negated=True)
