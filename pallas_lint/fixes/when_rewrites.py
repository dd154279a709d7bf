"""Rewrites of Python control flow on tracers to its Pallas equivalents."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.finding import Edit, Span
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.kernels.model.values import Array
from pallas_lint.syntax import Site, nodes
from pallas_lint.syntax.bindings import text_of
from pallas_lint.syntax.search import descendants

if TYPE_CHECKING:
    import tree_sitter

    from pallas_lint.checker.context import Context
    from pallas_lint.finding import Fix
    from pallas_lint.kernels.interpreter.modules import Module
    from pallas_lint.kernels.model.trace import Concretization
    from pallas_lint.syntax import Piece

_NAME = re.compile(r"[A-Za-z_]\w*")


def branch_as_when(concretization: Concretization, context: Context) -> Fix | None:
    """`if condition:` around stores becomes `@pl.when(condition)` on a function."""
    module = context.module_of(concretization.site)
    statement = _statement_at(concretization.site.span, module)
    shape = concretization.value.shape if isinstance(concretization.value, Array) else None
    if statement is None or (shape is not None and shape != ()):
        return None
    condition, body = statement.child_by_field_name("condition"), statement.child_by_field_name("consequence")
    alternatives = statement.children_by_field_name("alternative")
    if condition is None or body is None or len(alternatives) > 1:
        return None
    other = None
    if alternatives:
        other = alternatives[0].child_by_field_name("body")
        if alternatives[0].type != "else_clause" or other is None:
            return None
    bodies = [body] if other is None else [body, other]
    if not all(_is_stores(body, statement) for body in bodies):
        return None
    span = module.uses.span
    whole = span(statement)
    indent = module.source.line(whole.start.line)[: whole.start.column - 1]
    if indent.strip() or any(span(body).start.line == whole.start.line for body in bodies):
        return None
    spelled, imports = context.spell(f"{PALLAS}.when", module)
    text = text_of(condition)
    if condition.type == "parenthesized_expression":
        text = text[1:-1].strip()
    colon = _colon(statement)
    if colon is None:
        return None
    header = Edit(Span(whole.path, whole.start, span(colon).end), f"@{spelled}({text})\n{indent}def _():")
    if other is None:
        # What raises whenever it is reached has no result to keep.
        make = context.safe if concretization.certain or shape == () else context.unsafe
        return make(f"guard the stores with `{spelled}`", header, *imports)
    negation, more = context.spell("jax.numpy.logical_not", module)
    colon = _colon(alternatives[0])
    if colon is None:
        return None
    place = span(alternatives[0])
    second = Edit(Span(place.path, place.start, span(colon).end), f"@{spelled}({negation}({text}))\n{indent}def _():")
    return context.unsafe(f"guard both branches with `{spelled}`", header, second, *imports, *more)


def sliced_by_ds(concretization: Concretization, context: Context) -> Fix | None:
    """`ref[i * B:(i + 1) * B]` and `ref[start:start + B]` become `ref[pl.ds(start, B)]`."""
    module = context.module_of(concretization.site)
    node = concretization.site.node
    if not isinstance(node, nodes.Subscript):
        return None
    spelled, imports = context.spell(f"{PALLAS}.ds", module)
    edits = []
    for element in node.slice:
        if not isinstance(element.slice, nodes.Slice) or element.slice.step is not None:
            continue
        lower, upper = element.slice.lower, element.slice.upper
        if lower is None or upper is None:
            continue
        piece = concretization.site.piece
        start, stop = piece.code(lower), piece.code(upper)
        size = _size(piece, upper, lower)
        if size is None:
            if not (stop.isdigit() and start.isdigit()):
                return None
            continue
        if piece.parentheses(lower) or piece.parentheses(upper):
            return None  # the positions of parentheses are not kept
        first, last = Site(concretization.site.piece, lower).span, Site(concretization.site.piece, upper).span
        edits.append(Edit(Span(first.path, first.start, last.end), f"{spelled}({start}, {size})"))
    if not edits:
        return None
    return context.safe(f"slice with `{spelled}`", *edits, *imports)


def _size(piece: Piece, upper: nodes.BaseExpression, lower: nodes.BaseExpression) -> str | None:
    """The size of `start:start + size`, or of `i * size:(i + 1) * size`."""
    code, start = piece.code, piece.code(lower)
    if not isinstance(upper, nodes.BinaryOperation):
        return None
    left, right = upper.left, upper.right
    if isinstance(upper.operator, nodes.Add):
        if code(left) == start:
            return code(right)
        return code(left) if code(right) == start else None
    if not isinstance(upper.operator, nodes.Multiply) or not isinstance(lower, nodes.BinaryOperation):
        return None
    if not isinstance(lower.operator, nodes.Multiply):
        return None
    for step, size in ((left, right), (right, left)):
        if not isinstance(step, nodes.BinaryOperation) or not isinstance(step.operator, nodes.Add):
            continue
        sides = {code(step.left), code(step.right)}
        for index, other in ((lower.left, lower.right), (lower.right, lower.left)):
            if code(other) == code(size) and sides == {code(index), "1"}:
                return code(size)
    return None


def _statement_at(span: Span, module: Module) -> tree_sitter.Node | None:
    """The `if` statement with this condition."""
    tree = module.outline.tree
    if tree is None:
        return None
    for node in descendants(tree.root_node):
        if node.type == "if_statement":
            condition = node.child_by_field_name("condition")
            if condition is None:
                continue
            place = module.uses.span(condition)
            if place.start <= span.start and span.end <= place.end:
                return node
    return None


def _colon(statement: tree_sitter.Node) -> tree_sitter.Node | None:
    return next((child for child in statement.children if child.type == ":"), None)


def _is_stores(block: tree_sitter.Node, statement: tree_sitter.Node) -> bool:
    """Whether a block only stores, calls and sets names that nothing after it uses."""
    names: set[str] = set()
    stored = False
    for child in block.named_children:
        if child.type in ("comment", "pass_statement"):
            continue
        if child.type != "expression_statement" or len(child.named_children) != 1:
            return False
        inner = child.named_children[0]
        if inner.type == "call":
            stored = True
            continue
        if inner.type not in ("assignment", "augmented_assignment"):
            return False
        left = inner.child_by_field_name("left")
        if left is None:
            return False
        if left.type == "subscript":
            stored = True
        elif left.type == "identifier" and inner.type == "assignment":
            names.add(text_of(left))
        else:
            return False
    function: tree_sitter.Node | None = statement
    while function is not None and function.type != "function_definition":
        function = function.parent
    if function is None:
        return False
    outside = text_of(function).replace(text_of(block), "", 1)
    return stored and names.isdisjoint(_NAME.findall(outside))
