"""Statements, from tree-sitter's nodes to ours; unexpected nodes raise, as in `expressions`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk
from pallas_lint.syntax.reading import kinds
from pallas_lint.syntax.reading.expressions import (
    BINARY_BY_SYMBOL,
    arguments,
    asynchronous,
    from_,
    named,
    open_tuple,
    yielded,
)
from pallas_lint.syntax.reading.imports import as_name, import_, import_from
from pallas_lint.syntax.reading.match_patterns import pattern_of
from pallas_lint.syntax.reading.signatures import annotated, parameters
from pallas_lint.syntax.reading.tokens import (
    SourceText,
    exactly,
    expression,
    only_name,
    parts,
    separated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tree_sitter import Node

_AUGMENTED: dict[int, type[nodes.BaseAugOp]] = {
    kinds.kind(f"{symbol}="): getattr(nodes, f"{kind.__name__}Assign") for symbol, kind in BINARY_BY_SYMBOL.items()
}
_UP_TO_LINE_END = re.compile(rb"[ \t\f]*(?:#[^\n]*|\r(?=\n))?(\n)?")


def block(text: SourceText, children: Sequence[Node], indent: bytes | None = None) -> list[nodes.BaseStatement]:
    """The statements of a module or of an indented block; those that share a line are one."""
    found: list[nodes.BaseStatement] = []
    line: list[nodes.BaseSmallStatement] = []
    goes_on = False
    end = 0
    for child in children:
        kind = child.kind_id
        small = _SMALL.get(kind)
        if small is not None:
            if goes_on and _same_line(text, end, child.start_byte):
                line.append(small(text, child))
            else:
                indent = text.begin(child, indent)
                line = [small(text, child)]
                found.append(nodes.SimpleStatementLine(0, 0, line))
            goes_on = False
        elif kind == kinds.SEMICOLON:
            goes_on, end = True, child.end_byte
        elif kind != kinds.COMMENT:
            indent = text.begin(child, indent)
            found.append(_COMPOUND[kind](text, child))
            goes_on = False
    for statement in found:
        if statement.__class__ is nodes.SimpleStatementLine:
            statement.at, statement.to = statement.body[0].at, statement.body[-1].to
    return found


def _same_line(text: SourceText, at: int, to: int) -> bool:
    """Whether no line ends between two bytes."""
    found = _UP_TO_LINE_END.match(text, at, to)
    if found is None or (found[1] is None and found.end() != to):
        raise ValueError  # a backslash: the line goes on
    return found[1] is None


def _suite(text: SourceText, colon: Node, node: Node) -> nodes.IndentedBlock | nodes.SimpleStatementSuite:
    if _same_line(text, colon.end_byte, node.start_byte):
        body = [_SMALL[child.kind_id](text, child) for child in parts(node) if child.kind_id != kinds.SEMICOLON]
        return nodes.SimpleStatementSuite(body[0].at, body[-1].to, body)
    statements = block(text, node.children)
    return nodes.IndentedBlock(statements[0].at, statements[-1].to, statements)


# -- small statements ----------------------------------------------------------------------------------------------


def _expression_statement(text: SourceText, node: Node) -> nodes.BaseSmallStatement:
    children = parts(node)
    at, to = node.start_byte, node.end_byte
    if len(children) > 1:
        return nodes.Expr(at, to, open_tuple(text, children, at, to))
    (child,) = children
    if child.kind_id == kinds.ASSIGNMENT:
        return _assignment(text, child)
    if child.kind_id == kinds.AUGMENTED_ASSIGNMENT:
        target, token, value = exactly(child, 3)
        operator = _AUGMENTED[token.kind_id](token.start_byte, token.end_byte)
        return nodes.AugAssign(at, to, _single(expression(text, target)), operator, yielded(text, value))
    return nodes.Expr(at, to, yielded(text, child))


def _assignment(text: SourceText, node: Node) -> nodes.BaseSmallStatement:
    at, to = node.start_byte, node.end_byte
    targets: list[nodes.AssignTarget] = []
    while node.kind_id == kinds.ASSIGNMENT:
        children = parts(node)
        target = children[0]
        if children[1].kind_id == kinds.COLON:
            if targets:
                raise ValueError
            annotation = _plainly_annotated(text, children[2])
            value = yielded(text, children[4]) if len(children) > 3 else None
            return nodes.AnnAssign(at, to, _single(expression(text, target)), annotation, value)
        _, _, node = children
        assigned = expression(text, target)
        targets.append(nodes.AssignTarget(target.start_byte, target.end_byte, assigned))
    return nodes.Assign(at, to, targets, yielded(text, node))


def _plainly_annotated(text: SourceText, node: Node) -> nodes.Annotation:
    """An annotation of anything but `*args`, which alone takes a star."""
    annotation = annotated(text, node)
    if isinstance(annotation.annotation, nodes.StarredElement):
        raise ValueError  # the code is wrong, not the type of an argument
    return annotation


def _single(target: nodes.BaseExpression) -> nodes.BaseExpression:
    if not isinstance(target, nodes.Name | nodes.Attribute | nodes.Subscript):
        raise ValueError  # the code is wrong, not the type of an argument
    return target


def _target(target: nodes.BaseExpression) -> nodes.BaseExpression:
    """A target that is bound or deleted, for which tree-sitter accepts any expression."""
    if isinstance(target, nodes.Tuple | nodes.List):
        for element in target.elements:
            _target(element.value)
        return target
    return _single(target)


def _return(text: SourceText, node: Node) -> nodes.Return:
    _, *rest = parts(node)
    value = None
    if rest:
        (returned,) = rest
        value = expression(text, returned)
    return nodes.Return(node.start_byte, node.end_byte, value)


def _raise(text: SourceText, node: Node) -> nodes.Raise:
    _, *rest = parts(node)
    exc = cause = None
    if rest:
        exc = _not_open(expression(text, rest[0]), rest[0])
    if rest[1:]:
        _, token, item = rest
        cause = from_(text, token, item)
    return nodes.Raise(node.start_byte, node.end_byte, exc, cause)


def _not_open(value: nodes.BaseExpression, node: Node) -> nodes.BaseExpression:
    if node.kind_id == kinds.EXPRESSION_LIST:
        raise ValueError
    return value


def _assert(text: SourceText, node: Node) -> nodes.Assert:
    _, *rest = parts(node)
    test, *messages = separated(rest)
    message = None
    if messages:
        (text_of_message,) = messages
        message = expression(text, text_of_message)
    return nodes.Assert(node.start_byte, node.end_byte, expression(text, test), message)


def _delete(text: SourceText, node: Node) -> nodes.Del:
    _, target = exactly(node, 2)
    deleted = _target(expression(text, target))
    if any(isinstance(inner, nodes.StarredElement) for inner in walk(deleted)):
        raise ValueError
    return nodes.Del(node.start_byte, node.end_byte, deleted)


def _declaration(kind: type[nodes.Global | nodes.Nonlocal]) -> Callable[[SourceText, Node], nodes.BaseSmallStatement]:
    def made(text: SourceText, node: Node) -> nodes.BaseSmallStatement:
        names = [only_name(text, child) for child in separated(parts(node)[1:])]
        return kind(node.start_byte, node.end_byte, [nodes.NameItem(name.at, name.to, name) for name in names])

    return made


def _word(
    kind: type[nodes.Pass | nodes.Break | nodes.Continue],
) -> Callable[[SourceText, Node], nodes.BaseSmallStatement]:
    return lambda text, node: kind(node.start_byte, node.end_byte)


# -- compound statements -------------------------------------------------------------------------------------------


def _clauses(text: SourceText, clauses: list[Node]) -> nodes.If | nodes.Else | None:
    """What follows the body of an `if`."""
    if not clauses:
        return None
    first, *rest = clauses
    if first.kind_id == kinds.ELSE_CLAUSE:
        if rest:
            raise ValueError
        return _else(text, first)
    _, test, colon, body = parts(first)
    return _if_of(text, first.start_byte, test, colon, body, rest)


def _clause(text: SourceText, owner: Node, clause: Node) -> Node:
    """Check that a clause begins a line, indented like its statement."""
    text.begin(clause, text.indents[owner.start_byte])
    return clause


def _if(text: SourceText, node: Node) -> nodes.If:
    _, test, colon, body, *clauses = parts(node)
    for clause in clauses:
        _clause(text, node, clause)
    return _if_of(text, node.start_byte, test, colon, body, clauses)


def _if_of(text: SourceText, at: int, test: Node, colon: Node, body: Node, clauses: list[Node]) -> nodes.If:
    suite = _suite(text, colon, body)
    orelse = _clauses(text, clauses)
    return nodes.If(at, (orelse or suite).to, named(text, test), suite, orelse)


def _else(text: SourceText, node: Node) -> nodes.Else:
    _, colon, body = parts(node)
    suite = _suite(text, colon, body)
    return nodes.Else(node.start_byte, suite.to, suite)


def _orelse(text: SourceText, owner: Node, clauses: list[Node]) -> nodes.Else | None:
    if not clauses:
        return None
    (clause,) = clauses
    if clause.kind_id != kinds.ELSE_CLAUSE:
        raise ValueError
    return _else(text, _clause(text, owner, clause))


def _for(text: SourceText, node: Node) -> nodes.For:
    children = parts(node)
    async_ = asynchronous(children)
    if async_ is not None:
        del children[0]
    _, target, _, iterable, colon, body, *clauses = children
    suite, orelse = _suite(text, colon, body), _orelse(text, node, clauses)
    to = (orelse or suite).to
    bound = expression(text, target)
    return nodes.For(node.start_byte, to, bound, expression(text, iterable), suite, orelse, async_)


def _while(text: SourceText, node: Node) -> nodes.While:
    _, test, colon, body, *clauses = parts(node)
    suite, orelse = _suite(text, colon, body), _orelse(text, node, clauses)
    return nodes.While(node.start_byte, (orelse or suite).to, named(text, test), suite, orelse)


def _try(text: SourceText, node: Node) -> nodes.BaseStatement:
    _, colon, body, *clauses = parts(node)
    suite = _suite(text, colon, body)
    for clause in clauses:
        _clause(text, node, clause)
    handlers: list[nodes.ExceptHandler] = []
    star_handlers: list[nodes.ExceptStarHandler] = []
    while clauses and clauses[0].kind_id == kinds.EXCEPT_CLAUSE:
        handler = _handler(text, clauses.pop(0))
        (handlers if isinstance(handler, nodes.ExceptHandler) else star_handlers).append(handler)  # type: ignore[arg-type]
    orelse = _else(text, clauses.pop(0)) if clauses and clauses[0].kind_id == kinds.ELSE_CLAUSE else None
    finalbody = None
    if clauses:
        (last,) = clauses
        token, colon, body = parts(last)
        if token.kind_id != kinds.FINALLY:
            raise ValueError
        final = _suite(text, colon, body)
        finalbody = nodes.Finally(last.start_byte, final.to, final)
    if (handlers and star_handlers) or not (handlers or star_handlers or finalbody):
        raise ValueError
    to = [part for part in (suite, *handlers, *star_handlers, orelse, finalbody) if part is not None][-1].to
    if star_handlers:
        return nodes.TryStar(node.start_byte, to, suite, star_handlers, orelse, finalbody)
    return nodes.Try(node.start_byte, to, suite, handlers, orelse, finalbody)


def _handler(text: SourceText, node: Node) -> nodes.ExceptHandler | nodes.ExceptStarHandler:
    _, *head, colon, body = parts(node)
    star = bool(head) and head[0].kind_id == kinds.STAR
    if star:
        del head[0]
    suite = _suite(text, colon, body)
    kind = name = None
    if head:
        (caught,) = head
        if caught.kind_id == kinds.AS_PATTERN:
            caught, as_, target = exactly(caught, 3)
            (alias,) = exactly(target, 1)
            name = as_name(text, as_, only_name(text, alias))
        kind = _not_open(expression(text, caught), caught)
    if not star:
        return nodes.ExceptHandler(node.start_byte, suite.to, suite, kind, name)
    if kind is None:
        raise ValueError
    return nodes.ExceptStarHandler(node.start_byte, suite.to, suite, kind, name)


def _with(text: SourceText, node: Node) -> nodes.With:
    children = parts(node)
    async_ = asynchronous(children)
    if async_ is not None:
        del children[0]
    _, clause, colon, body = children
    inside = parts(clause)
    if inside[0].kind_id == kinds.PARENTHESIS:
        inside = inside[1:-1]
    elif inside[-1].kind_id == kinds.COMMA:
        raise ValueError
    items = [_with_item(text, child) for child in separated(inside)]
    if len(inside) == 1 and not isinstance(items[0].item, nodes.Yield):
        items[0].at, items[0].to = _without_parentheses(inside[0])
    suite = _suite(text, colon, body)
    return nodes.With(node.start_byte, suite.to, items, suite, async_)


def _without_parentheses(item: Node) -> tuple[int, int]:
    """The position of the sole item of a `with`: the outer parentheses belong to the statement."""
    (value,) = exactly(item, 1)
    if value.kind_id == kinds.PARENTHESIZED_EXPRESSION:
        _, value, _ = exactly(value, 3)
    return value.start_byte, value.end_byte


def _with_item(text: SourceText, node: Node) -> nodes.WithItem:
    (value,) = exactly(node, 1)
    name = None
    if value.kind_id == kinds.AS_PATTERN:
        value, as_, target = exactly(value, 3)
        (alias,) = exactly(target, 1)
        name = nodes.AsName(as_.start_byte, target.end_byte, _target(expression(text, alias)))  # type: ignore[arg-type]
    return nodes.WithItem(node.start_byte, node.end_byte, expression(text, value), name)


def _decorated(text: SourceText, node: Node) -> nodes.BaseStatement:
    first, *others = parts(node)
    for clause in others:
        _clause(text, node, clause)
    *decorators, definition = (first, *others)
    found: list[nodes.Decorator] = []
    for decorator in decorators:
        _, value = exactly(decorator, 2)
        found.append(nodes.Decorator(decorator.start_byte, value.end_byte, named(text, value)))
    kind = _function if definition.kind_id == kinds.FUNCTION_DEFINITION else _class
    return kind(text, definition, found)


def _function(text: SourceText, node: Node, decorators: list[nodes.Decorator] | None = None) -> nodes.FunctionDef:
    children = parts(node)
    async_ = asynchronous(children)
    if async_ is not None:
        del children[0]
    _, name, *head, colon, body = children
    generic = _type_parameters(text, head.pop(0)) if head[0].kind_id == kinds.TYPE_PARAMETER else None
    given, *arrow = head
    returns = None
    if arrow:
        _, type_ = arrow
        returns = _plainly_annotated(text, type_)
    inside = parts(given)[1:-1]
    at, to = (inside[0].start_byte, inside[-1].end_byte) if inside else (given.end_byte - 1,) * 2
    params = parameters(text, separated(inside), at, to)
    suite = _suite(text, colon, body)
    return nodes.FunctionDef(
        node.start_byte, suite.to, only_name(text, name), params, suite, decorators or [], returns, async_, generic
    )


def _class(text: SourceText, node: Node, decorators: list[nodes.Decorator] | None = None) -> nodes.ClassDef:
    _, name, *head, colon, body = parts(node)
    generic = _type_parameters(text, head.pop(0)) if head and head[0].kind_id == kinds.TYPE_PARAMETER else None
    args: list[nodes.Arg] = []
    if head:
        (given,) = head
        args = arguments(text, given)
    keywords = [arg for arg in args if arg.keyword is not None or arg.star == "**"]
    bases = args[: len(args) - len(keywords)]
    if any(arg in keywords for arg in bases):
        raise ValueError
    suite = _suite(text, colon, body)
    named = only_name(text, name)
    return nodes.ClassDef(node.start_byte, suite.to, named, suite, bases, keywords, decorators or [], generic)


def _type_parameters(text: SourceText, node: Node) -> nodes.TypeParameters:
    params = [_type_parameter(text, child) for child in separated(node.children[1:-1])]
    return nodes.TypeParameters(node.start_byte, node.end_byte, params)


_UNPACKED: dict[int, type[nodes.TypeVarTuple | nodes.ParamSpec]] = {
    kinds.STAR: nodes.TypeVarTuple,
    kinds.DOUBLE_STAR: nodes.ParamSpec,
}


def _type_parameter(text: SourceText, node: Node) -> nodes.TypeParam:
    at, to = node.start_byte, node.end_byte
    (inner,) = exactly(node, 1)
    param: nodes.TypeVar | nodes.TypeVarTuple | nodes.ParamSpec
    if inner.kind_id == kinds.CONSTRAINED_TYPE:
        named, _, bound = exactly(inner, 3)
        (only,) = exactly(named, 1)
        param = nodes.TypeVar(at, to, only_name(text, only), expression(text, bound))
    elif inner.kind_id in (kinds.SPLAT_TYPE, kinds.LIST_SPLAT):
        stars, named = exactly(inner, 2)
        kind = _UNPACKED[stars.kind_id]
        param = kind(at, to, only_name(text, named))
    else:
        param = nodes.TypeVar(at, to, only_name(text, inner), None)
    return nodes.TypeParam(at, to, param, "", None)


def _type_alias(text: SourceText, node: Node) -> nodes.TypeAlias:
    _, left, _, right = exactly(node, 4)
    (named,) = exactly(left, 1)
    generic = None
    if named.kind_id == kinds.GENERIC_TYPE:
        named, given = exactly(named, 2)
        generic = _type_parameters(text, given)
    value = expression(text, right)
    return nodes.TypeAlias(node.start_byte, node.end_byte, only_name(text, named), value, generic)


def _match(text: SourceText, node: Node) -> nodes.Match:
    *head, _, body = parts(node)
    subjects = separated(head[1:])
    subject = (
        open_tuple(text, head[1:], subjects[0].start_byte, head[-1].end_byte)
        if len(head) > 2
        else named(text, subjects[0])
    )
    first, *others = parts(body)
    indent = text.begin(first)
    for clause in others:
        text.begin(clause, indent)
    cases = [_case(text, child) for child in (first, *others)]
    return nodes.Match(node.start_byte, cases[-1].to, subject, cases)


def _case(text: SourceText, node: Node) -> nodes.MatchCase:
    _, *head, colon, body = parts(node)
    guard = None
    if head[-1].kind_id == kinds.IF_CLAUSE:
        _, test = exactly(head.pop(), 2)
        guard = named(text, test)
    suite = _suite(text, colon, body)
    return nodes.MatchCase(node.start_byte, suite.to, pattern_of(text, head), suite, guard)


_SMALL_READERS: dict[str, Callable[[SourceText, Node], nodes.BaseSmallStatement]] = {
    "expression_statement": _expression_statement,
    "return_statement": _return,
    "raise_statement": _raise,
    "assert_statement": _assert,
    "delete_statement": _delete,
    "global_statement": _declaration(nodes.Global),
    "nonlocal_statement": _declaration(nodes.Nonlocal),
    "pass_statement": _word(nodes.Pass),
    "break_statement": _word(nodes.Break),
    "continue_statement": _word(nodes.Continue),
    "import_statement": import_,
    "import_from_statement": import_from,
    "future_import_statement": import_from,
    "type_alias_statement": _type_alias,
}
_COMPOUND_READERS: dict[str, Callable[[SourceText, Node], nodes.BaseStatement]] = {
    "if_statement": _if,
    "for_statement": _for,
    "while_statement": _while,
    "try_statement": _try,
    "with_statement": _with,
    "decorated_definition": _decorated,
    "function_definition": _function,
    "class_definition": _class,
    "match_statement": _match,
}
_SMALL, _COMPOUND = kinds.by_kind(_SMALL_READERS), kinds.by_kind(_COMPOUND_READERS)
