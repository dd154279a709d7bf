"""Dead code: expressions with unused results, of which jax removes the operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from pallas_lint.syntax.piece import Piece, Site

_MODULES = ("jnp", "lax")
# Functions that run code, or that may be called for what else they do.
_RUNNING = frozenset("fori_loop while_loop scan cond switch map associative_scan vectorize apply_along_axis".split())
_PARTS = (nodes.BinaryOperation, nodes.UnaryOperation, nodes.Comparison, nodes.ComparisonTarget, nodes.Attribute)


def is_unused(site: Site) -> bool:
    """Whether an expression's value certainly goes nowhere: into a name that nothing reads, or that such ones read.

    Only expressions that do nothing else count: operators, subscripts, and functions of `jnp` and `lax`.
    """
    return _is_unused(site.piece, site.node, frozenset())


def is_unread(site: Site) -> bool:
    """Whether an expression's value certainly goes nowhere, and nothing is made of it."""
    parent = site.piece.parents.get(site.node)
    if isinstance(parent, nodes.Assign) and len(parent.targets) == 1:
        target, function = parent.targets[0].target, _function_around(site.piece, parent)
        if isinstance(target, nodes.Name) and function is not None:
            named = [each for each in walk(function) if nodes.is_name(each, target.value)]
            return len(named) == 1
    return isinstance(parent, nodes.Expr) and isinstance(site.node, nodes.Subscript)


def _is_unused(piece: Piece, node: nodes.Node, seen: frozenset[nodes.Node]) -> bool:
    if isinstance(node, nodes.Call) and not _is_pure(node):
        return False
    parent = piece.parents.get(node)
    while parent is not None and not isinstance(parent, nodes.Assign | nodes.Expr):
        if isinstance(parent, nodes.Call) and not _is_pure(parent):
            return False
        if not isinstance(
            parent, (*_PARTS, nodes.Call, nodes.Arg, nodes.Subscript, nodes.SubscriptElement, nodes.Index)
        ):
            return False
        parent = piece.parents.get(parent)
    if parent is None or parent in seen:
        return False
    if isinstance(parent, nodes.Expr):
        return True
    function = _function_around(piece, parent)
    targets = [target.target for target in parent.targets]
    if function is None or not all(isinstance(target, nodes.Name) for target in targets):
        return False
    names = {target.value for target in targets if isinstance(target, nodes.Name)}
    every = list(walk(function))
    if any(isinstance(each, nodes.Global | nodes.Nonlocal | nodes.NamedExpr) for each in every):
        return False
    named = [each for each in every if isinstance(each, nodes.Name) and each.value in names]
    return all(_is_target(piece, each) or _is_unused(piece, each, seen | {parent}) for each in named)


def _is_pure(call: nodes.Call) -> bool:
    """Whether it is written as a call of a function of `jnp` or `lax` that only computes."""
    func = call.func
    return (
        isinstance(func, nodes.Attribute)
        and isinstance(func.value, nodes.Name)
        and func.value.value in _MODULES
        and func.attr.value not in _RUNNING
    )


def _is_target(piece: Piece, name: nodes.Name) -> bool:
    parent = piece.parents.get(name)
    return isinstance(parent, nodes.AssignTarget) or (isinstance(parent, nodes.Attribute) and parent.attr is name)


def _function_around(piece: Piece, node: nodes.Node) -> nodes.Node | None:
    """The outermost function around a statement: nested ones read its names."""
    found: nodes.Node | None = None
    parent = piece.parents.get(node)
    while parent is not None:
        if isinstance(parent, nodes.FunctionDef):
            found = parent
        parent = piece.parents.get(parent)
    return found
