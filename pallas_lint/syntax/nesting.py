"""Expressions in their context: their parts as text, and the parentheses that a rewrite needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.syntax.piece import Site

# Around these no operator can bind tighter than a comparison does.
_LOOSE = (
    nodes.Arg, nodes.Assign, nodes.AnnAssign, nodes.AugAssign, nodes.Return, nodes.Expr, nodes.Element, nodes.Index,
    nodes.Slice, nodes.IfExp, nodes.BooleanOperation, nodes.Lambda, nodes.NamedExpr, nodes.If, nodes.While,
    nodes.Assert, nodes.CompIf, nodes.DictElement, nodes.FormattedStringExpression,
)  # fmt: skip
# What a method call or an index can follow directly.
_ATOMS = (nodes.Name, nodes.Attribute, nodes.Call, nodes.Subscript)


def parent(site: Site) -> nodes.Node | None:
    """The node of which this one is a part."""
    return site.piece.parents.get(site.node)


def operand(site: Site) -> str:
    """The expression's text, in parentheses unless a method call can follow it or it is a plain argument."""
    code = site.code
    return code if isinstance(site.node, _ATOMS) else f"({code})"


def fitted(site: Site, text: str) -> str:
    """`text`, a comparison or a tighter operation, in parentheses if it needs them in the place of `site`."""
    if site.piece.parentheses(site.node):
        return text
    outer = parent(site)
    if isinstance(outer, _LOOSE) and not (isinstance(outer, nodes.Arg) and outer.star):
        return text
    if isinstance(outer, nodes.UnaryOperation) and isinstance(outer.operator, nodes.Not):
        return text
    return f"({text})"


def spelled_function(site: Site) -> str:
    """What the code calls: "jnp.dot" for `jnp.dot(a, b)`, "x.dot" for a method, "@" for an operator."""
    from pallas_lint.syntax.piece import Site as Place

    node = site.node
    if isinstance(node, nodes.Call):
        code = Place(site.piece, node.func).code
        return code if len(code) <= 40 and "\n" not in code else code.rpartition(".")[2]
    if isinstance(node, nodes.BinaryOperation | nodes.AugAssign):
        return Place(site.piece, node.operator).code.strip()
    return site.code.partition("\n")[0][:40]
