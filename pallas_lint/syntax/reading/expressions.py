"""Expressions without strings and lambdas, from tree-sitter's nodes to ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pallas_lint.syntax import nodes
from pallas_lint.syntax.reading import kinds
from pallas_lint.syntax.reading.tokens import (
    Reader,
    SourceText,
    exactly,
    expression,
    name,
    only_name,
    parts,
    separated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tree_sitter import Node

_STAR = ord("*")
_UNARY = kinds.by_kind({"-": nodes.Minus, "+": nodes.Plus, "~": nodes.BitInvert})
BINARY_BY_SYMBOL: dict[str, type[nodes.BaseBinaryOp]] = {
    "+": nodes.Add,
    "-": nodes.Subtract,
    "*": nodes.Multiply,
    "/": nodes.Divide,
    "//": nodes.FloorDivide,
    "%": nodes.Modulo,
    "**": nodes.Power,
    "@": nodes.MatrixMultiply,
    "<<": nodes.LeftShift,
    ">>": nodes.RightShift,
    "&": nodes.BitAnd,
    "|": nodes.BitOr,
    "^": nodes.BitXor,
}
_BINARY = kinds.by_kind(BINARY_BY_SYMBOL)
_BOOLEAN = kinds.by_kind({"and": nodes.And, "or": nodes.Or})
_COMPARISON = kinds.by_kind(
    {
        "==": nodes.Equal,
        "!=": nodes.NotEqual,
        "<": nodes.LessThan,
        "<=": nodes.LessThanEqual,
        ">": nodes.GreaterThan,
        ">=": nodes.GreaterThanEqual,
        "in": nodes.In,
        "not in": nodes.NotIn,
        "is": nodes.Is,
        "is not": nodes.IsNot,
    }
)


def _ellipsis(text: SourceText, node: Node) -> nodes.Ellipsis:
    return nodes.Ellipsis(node.start_byte, node.end_byte)


def _constant(text: SourceText, node: Node) -> nodes.Name:
    return nodes.Name(node.start_byte, node.end_byte, text.of(node))


# What binds too loosely to stand there without parentheses in Python's grammar, but may in tree-sitter's.
_LOOSER_THAN_OR = frozenset({kinds.CONDITIONAL_EXPRESSION, kinds.LAMBDA})
_LOOSER_THAN_STAR = _LOOSER_THAN_OR | {kinds.BOOLEAN_OPERATOR, kinds.COMPARISON_OPERATOR, kinds.NOT_OPERATOR}
_LOOSER_THAN_AWAIT = _LOOSER_THAN_STAR | {kinds.AWAIT, kinds.BINARY_OPERATOR, kinds.UNARY_OPERATOR}


def _tighter(text: SourceText, node: Node, looser: frozenset[int]) -> nodes.BaseExpression:
    if node.kind_id in looser:
        raise ValueError
    return expression(text, node)


# -- containers ----------------------------------------------------------------------------------------------------


def _element(text: SourceText, node: Node) -> nodes.Element | nodes.StarredElement:
    at, to = node.start_byte, node.end_byte
    if text[at] == _STAR:
        return nodes.StarredElement(at, to, _behind_star(text, node))
    return nodes.Element(at, to, named(text, node))


def _behind_star(text: SourceText, node: Node, *, in_call: bool = False) -> nodes.BaseExpression:
    """What `*` unpacks: in calls any expression, else none with `or` and its like outside of parentheses.

    tree-sitter sees `*a.b` as an attribute of `*a` in a list.
    """
    kind = node.kind_id
    if kind in (kinds.LIST_SPLAT, kinds.LIST_SPLAT_PATTERN):
        _, value = exactly(node, 2)
        return expression(text, value) if in_call else _tighter(text, value, _LOOSER_THAN_STAR)
    inner = _behind_star(text, node.children[0])
    found = _PRIMARIES[kind](text, node, inner)
    found.at = inner.at
    return found


def _tuple_of(text: SourceText, children: Sequence[Node], at: int, to: int) -> nodes.Tuple:
    return nodes.Tuple(at, to, [_element(text, child) for child in separated(children)])


def open_tuple(text: SourceText, children: Sequence[Node], at: int, to: int) -> nodes.Tuple:
    """`a, b` without parentheses, between which alone `a, b := c` may stand."""
    if any(child.kind_id == kinds.NAMED_EXPRESSION for child in children):
        raise ValueError
    return _tuple_of(text, children, at, to)


def _open_tuple(text: SourceText, node: Node) -> nodes.BaseExpression:
    return open_tuple(text, node.children, node.start_byte, node.end_byte)


def _tuple(text: SourceText, node: Node) -> nodes.BaseExpression:
    """`(a, b)`, which stands between its parentheses; as a target also `(a)`, which is no tuple."""
    inner = parts(node)[1:-1]
    if len(inner) == 1:
        return expression(text, inner[0])
    at, to = (inner[0].start_byte, inner[-1].end_byte) if inner else (node.end_byte - 1,) * 2
    return _tuple_of(text, inner, at, to)


def _list(text: SourceText, node: Node) -> nodes.List:
    return nodes.List(
        node.start_byte, node.end_byte, [_element(text, child) for child in separated(node.children[1:-1])]
    )


def _set(text: SourceText, node: Node) -> nodes.Set:
    return nodes.Set(
        node.start_byte, node.end_byte, [_element(text, child) for child in separated(node.children[1:-1])]
    )


def _dictionary(text: SourceText, node: Node) -> nodes.Dict:
    elements: list[nodes.DictElement | nodes.StarredDictElement] = []
    for child in separated(node.children[1:-1]):
        if child.kind_id == kinds.DICTIONARY_SPLAT:
            _, value = exactly(child, 2)
            unpacked = _tighter(text, value, _LOOSER_THAN_STAR)
            elements.append(nodes.StarredDictElement(child.start_byte, child.end_byte, unpacked))
        else:
            elements.append(nodes.DictElement(child.start_byte, child.end_byte, *_pair(text, child)))
    return nodes.Dict(node.start_byte, node.end_byte, elements)


def _pair(text: SourceText, node: Node) -> tuple[nodes.BaseExpression, nodes.BaseExpression]:
    key, colon, value = exactly(node, 3)
    if colon.kind_id != kinds.COLON:
        raise ValueError
    return expression(text, key), expression(text, value)


def _comprehension(
    kind: type[nodes.ListComp | nodes.SetComp],
) -> Callable[[SourceText, Node], nodes.ListComp | nodes.SetComp]:
    def made(text: SourceText, node: Node) -> nodes.ListComp | nodes.SetComp:
        _, element, *clauses, _ = parts(node)
        return kind(node.start_byte, node.end_byte, named(text, element), _clauses(text, clauses))

    return made


def _generator(text: SourceText, node: Node) -> nodes.GeneratorExp:
    _, element, *clauses, _ = parts(node)
    elt, for_in = named(text, element), _clauses(text, clauses)
    return nodes.GeneratorExp(element.start_byte, clauses[-1].end_byte, elt, for_in)


def _dict_comprehension(text: SourceText, node: Node) -> nodes.DictComp:
    _, element, *clauses, _ = parts(node)
    return nodes.DictComp(node.start_byte, node.end_byte, *_pair(text, element), _clauses(text, clauses))


def _clauses(text: SourceText, clauses: list[Node]) -> nodes.CompFor:
    """The first `for` of a comprehension, with its conditions and the `for` inside it."""
    first, *rest = clauses
    *head, target, _, iterable = parts(first)
    if [token.kind_id for token in head] not in ([kinds.FOR], [kinds.ASYNC, kinds.FOR]):
        raise ValueError
    async_ = asynchronous(head)
    ifs: list[nodes.CompIf] = []
    while rest and rest[0].kind_id == kinds.IF_CLAUSE:
        condition = rest.pop(0)
        _, test = exactly(condition, 2)
        ifs.append(nodes.CompIf(condition.start_byte, condition.end_byte, _tighter(text, test, _LOOSER_THAN_OR)))
    inner = _clauses(text, rest) if rest else None
    value = _tighter(text, iterable, _LOOSER_THAN_OR)
    target_ = expression(text, target)
    return nodes.CompFor(first.start_byte, clauses[-1].end_byte, target_, value, ifs, inner, async_)


def asynchronous(head: list[Node]) -> nodes.Asynchronous | None:
    return nodes.Asynchronous(head[0].start_byte, head[0].end_byte) if head[0].kind_id == kinds.ASYNC else None


# -- operators -----------------------------------------------------------------------------------------------------


def _unary(text: SourceText, node: Node) -> nodes.UnaryOperation:
    token, operand = exactly(node, 2)
    operator = _UNARY[token.kind_id](token.start_byte, token.end_byte)
    return nodes.UnaryOperation(node.start_byte, node.end_byte, operator, expression(text, operand))


def _not(text: SourceText, node: Node) -> nodes.UnaryOperation:
    token, operand = exactly(node, 2)
    operator = nodes.Not(token.start_byte, token.end_byte)
    return nodes.UnaryOperation(node.start_byte, node.end_byte, operator, _tighter(text, operand, _LOOSER_THAN_OR))


def _binary(text: SourceText, node: Node) -> nodes.BinaryOperation:
    left, token, right = exactly(node, 3)
    operator = _BINARY[token.kind_id](token.start_byte, token.end_byte)
    return nodes.BinaryOperation(
        node.start_byte, node.end_byte, expression(text, left), operator, expression(text, right)
    )


def _boolean(text: SourceText, node: Node) -> nodes.BooleanOperation:
    left, token, right = exactly(node, 3)
    operator = _BOOLEAN[token.kind_id](token.start_byte, token.end_byte)
    first, second = (_tighter(text, side, _LOOSER_THAN_OR) for side in (left, right))
    return nodes.BooleanOperation(node.start_byte, node.end_byte, first, operator, second)


def _comparison(text: SourceText, node: Node) -> nodes.Comparison:
    left, *rest = parts(node)
    targets: list[nodes.ComparisonTarget] = []
    for token, operand in zip(rest[::2], rest[1::2], strict=True):
        operator = _COMPARISON[token.kind_id](token.start_byte, token.end_byte)
        targets.append(nodes.ComparisonTarget(token.start_byte, operand.end_byte, operator, expression(text, operand)))
    return nodes.Comparison(node.start_byte, node.end_byte, expression(text, left), targets)


def _conditional(text: SourceText, node: Node) -> nodes.IfExp:
    body, _, test, _, orelse = exactly(node, 5)
    first, second = (_tighter(text, side, _LOOSER_THAN_OR) for side in (test, body))
    return nodes.IfExp(node.start_byte, node.end_byte, first, second, expression(text, orelse))


def named(text: SourceText, node: Node) -> nodes.BaseExpression:
    """An expression where `name := value` may stand without parentheses."""
    if node.kind_id != kinds.NAMED_EXPRESSION:
        return expression(text, node)
    target, _, value = exactly(node, 3)
    return nodes.NamedExpr(node.start_byte, node.end_byte, only_name(text, target), expression(text, value))


def _await(text: SourceText, node: Node) -> nodes.Await:
    _, value = exactly(node, 2)
    return nodes.Await(node.start_byte, node.end_byte, _tighter(text, value, _LOOSER_THAN_AWAIT))


def yielded(text: SourceText, node: Node) -> nodes.BaseExpression:
    """An expression where `yield` may stand without parentheses."""
    if node.kind_id != kinds.YIELD:
        return expression(text, node)
    _, *rest = parts(node)
    value: nodes.BaseExpression | nodes.From | None = None
    if len(rest) == 2:
        value = from_(text, rest[0], rest[1])
    elif rest:
        (only,) = rest
        value = expression(text, only)
    return nodes.Yield(node.start_byte, node.end_byte, value)


def from_(text: SourceText, token: Node, item: Node) -> nodes.From:
    if token.kind_id != kinds.FROM:
        raise ValueError
    return nodes.From(token.start_byte, item.end_byte, expression(text, item))


def _parenthesized(text: SourceText, node: Node) -> nodes.BaseExpression:
    _, inner, _ = exactly(node, 3)
    return yielded(text, inner) if inner.kind_id == kinds.YIELD else named(text, inner)


# -- attributes, subscripts, calls ---------------------------------------------------------------------------------


def _attribute(text: SourceText, node: Node, owner: nodes.BaseExpression | None = None) -> nodes.Attribute:
    value, _, attr = exactly(node, 3)
    owner = owner or expression(text, value)
    return nodes.Attribute(node.start_byte, node.end_byte, owner, only_name(text, attr))


def _subscript(text: SourceText, node: Node, owner: nodes.BaseExpression | None = None) -> nodes.Subscript:
    value, bracket, *inside, _ = parts(node)
    if bracket.kind_id != kinds.BRACKET:
        raise ValueError
    slices = subscript_elements(text, inside)
    return nodes.Subscript(node.start_byte, node.end_byte, owner or expression(text, value), slices)


def subscript_elements(text: SourceText, inside: list[Node]) -> list[nodes.SubscriptElement]:
    indices = [_index(text, child) for child in separated(inside)]
    last = len(indices) - (inside[-1].kind_id != kinds.COMMA)
    return [nodes.SubscriptElement(each.at, each.to, each, at < last) for at, each in enumerate(indices)]


def _index(text: SourceText, node: Node) -> nodes.Index | nodes.Slice:
    at, to = node.start_byte, node.end_byte
    if node.kind_id == kinds.SLICE:
        bounds: list[nodes.BaseExpression | None] = [None]
        for child in parts(node):
            if child.kind_id == kinds.COLON:
                bounds.append(None)
            elif bounds[-1] is None:
                bounds[-1] = expression(text, child)
            else:
                raise ValueError
        lower, upper, step = (*bounds, None)[:3]
        return nodes.Slice(at, to, lower, upper, step)
    if text[at] == _STAR:
        return nodes.Index(at, to, _behind_star(text, node), "*")
    return nodes.Index(at, to, named(text, node), None)


def _call(text: SourceText, node: Node, callee: nodes.BaseExpression | None = None) -> nodes.Call:
    func, given = exactly(node, 2)
    if given.kind_id == kinds.GENERATOR_EXPRESSION:
        generator = _generator(text, given)
        args = [nodes.Arg(generator.at, generator.to, generator, None, "")]
    else:
        args = arguments(text, given)
    return nodes.Call(node.start_byte, node.end_byte, callee or expression(text, func), args)


def arguments(text: SourceText, node: Node) -> list[nodes.Arg]:
    """The arguments of a call."""
    found: list[nodes.Arg] = []
    positional, starred_ = True, True  # whether such an argument may still come
    for child in separated(node.children[1:-1]):
        at, to, kind = child.start_byte, child.end_byte, child.kind_id
        if kind == kinds.KEYWORD_ARGUMENT:
            keyword, _, value = exactly(child, 3)
            found.append(nodes.Arg(at, to, expression(text, value), only_name(text, keyword), ""))
            positional = False
        elif kind == kinds.DICTIONARY_SPLAT:
            _, value = exactly(child, 2)
            found.append(nodes.Arg(at, to, expression(text, value), None, "**"))
            positional = starred_ = False
        elif text[at] == _STAR:
            found.append(nodes.Arg(at, to, _behind_star(text, child, in_call=True), None, "*"))
            if not starred_:
                raise ValueError
        elif positional:
            found.append(nodes.Arg(at, to, named(text, child), None, ""))
        else:
            raise ValueError
    return found


_Primary: TypeAlias = "Callable[[SourceText, Node, nodes.BaseExpression], nodes.BaseExpression]"
_PRIMARIES: dict[int, _Primary] = {
    kinds.ATTRIBUTE: _attribute,
    kinds.SUBSCRIPT: _subscript,
    kinds.CALL: _call,
}
READERS: dict[str, Reader] = {
    "identifier": name,
    "true": _constant,
    "false": _constant,
    "none": _constant,
    "ellipsis": _ellipsis,
    "tuple": _tuple,
    "tuple_pattern": _tuple,
    "expression_list": _open_tuple,
    "pattern_list": _open_tuple,
    "list": _list,
    "list_pattern": _list,
    "set": _set,
    "dictionary": _dictionary,
    "list_comprehension": _comprehension(nodes.ListComp),
    "set_comprehension": _comprehension(nodes.SetComp),
    "generator_expression": _generator,
    "dictionary_comprehension": _dict_comprehension,
    "unary_operator": _unary,
    "not_operator": _not,
    "binary_operator": _binary,
    "boolean_operator": _boolean,
    "comparison_operator": _comparison,
    "conditional_expression": _conditional,
    "await": _await,
    "parenthesized_expression": _parenthesized,
    "attribute": _attribute,
    "subscript": _subscript,
    "call": _call,
    "member_type": _attribute,
}
