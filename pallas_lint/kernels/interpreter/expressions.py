"""Expressions of the abstract interpreter: one handler a class of nodes, in HANDLERS."""

from __future__ import annotations

import builtins
import contextlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pallas_lint.identity import ById
from pallas_lint.kernels.interpreter import iteration
from pallas_lint.kernels.interpreter.narrowing import facts_of, narrowed
from pallas_lint.kernels.launches import launching
from pallas_lint.kernels.library import arrays, indexing, members
from pallas_lint.kernels.library.host import machine
from pallas_lint.kernels.library.host.known_numbers import items_of
from pallas_lint.kernels.library.operators import AUGMENTED, BINARY, UNARY, binary, compare
from pallas_lint.kernels.model.arguments import Arguments
from pallas_lint.kernels.model.joins import join
from pallas_lint.kernels.model.known_names import public_name
from pallas_lint.kernels.model.symbols import is_of_shape, symbolic
from pallas_lint.kernels.model.trace import Capture, Guard
from pallas_lint.kernels.model.values import (
    ELLIPSIS,
    MAX_WEIGHT,
    NAMED_NUMBERS,
    NONE,
    UNKNOWN,
    Array,
    CallResult,
    Const,
    Dictionary,
    External,
    Func,
    Instance,
    OneOf,
    Ref,
    Seq,
    Slice,
    Sym,
    Value,
    as_tuple,
    chosen_number,
    of_any_items,
    truth,
    weight_of,
)
from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk
from pallas_lint.syntax.literals import literal, text_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from pallas_lint.kernels.model.scope import Env
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.tracer import Tracer

_BUILTINS = frozenset(dir(builtins))
_TRUE = Const(True)
_COPIED = 8  # parts of a container that are copied in one step
_ESCAPING = frozenset("\\{}")  # escapes in the text of an f-string


def dotted(node: nodes.Node | None) -> str:
    """The text of a dotted name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, nodes.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, nodes.Name):
        return ""
    return ".".join((node.value, *reversed(parts)))


def captured_names(pattern: nodes.MatchPattern) -> list[str]:
    """The names that a `match` pattern binds."""
    binding = (node for node in walk(pattern) if isinstance(node, nodes.MatchAs | nodes.MatchStar))
    return [node.name.value for node in binding if node.name is not None]


# -- names and constants ---------------------------------------------------------------------------------------


def lookup(interp: Tracer, name: str, env: Env) -> Value:
    value = env.find(name)
    if value is None:
        value = env.module.lookup_bound(name, interp)
    if value is None:
        return External(f"builtins.{name}") if name in _BUILTINS else UNKNOWN
    return value


# To libcst these are names like others.
_CONSTANTS = {"None": NONE, "True": Const(True), "False": Const(False)}


def _name(interp: Tracer, node: nodes.Name, env: Env) -> Value:
    constant = _CONSTANTS.get(node.value)
    if constant is not None:
        return constant
    if node.value == "__name__":
        # The file is judged as a script, with its last lines; what it imports is imported.
        return Const("__main__" if env.module is interp.root else "an imported module")
    value = lookup(interp, node.value, env)
    if isinstance(value, External):
        return NAMED_NUMBERS.get(value.name) or External(public_name(value.name), interp.frame.site(node))
    if interp.kernel is not None and isinstance(value, Array | Sym) and env.captures(node.value, interp.kernel):
        interp.frame.record(Capture(node.value, value, interp.frame.site(node)))
    return _up_to_date(interp, value) if interp.run.outdated else value


def _up_to_date(interp: Tracer, value: Value) -> Value:
    """A value that was looked up: what is in a list or dictionary that was changed under another name is not known."""
    return of_any_items(value) if isinstance(value, Seq | Dictionary) and ById(value) in interp.run.outdated else value


def _number(interp: Tracer, node: nodes.Integer | nodes.Float | nodes.Imaginary, env: Env) -> Value:
    return _literal(node.value)


@lru_cache(maxsize=1024)
def _literal(text: str) -> Value:
    try:
        return Const(literal(text))
    except (SyntaxError, ValueError):
        return UNKNOWN  # a number of more digits than Python reads


def _string(interp: Tracer, node: nodes.SimpleString | nodes.ConcatenatedString, env: Env) -> Value:
    if isinstance(node, nodes.SimpleString):
        return _literal(node.value)
    value = text_value(node)
    return UNKNOWN if value is None else Const(value)


def _formatted(interp: Tracer, node: nodes.FormattedString, env: Env) -> Value:
    pieces: list[str | None] = []
    for part in node.parts:
        if isinstance(part, nodes.FormattedStringExpression):
            value = interp.evaluate(part.expression, env)
            interp.frame.concretize("format" if part.format_spec else "shown", value, part.expression)
            plain = isinstance(value, Const) and not (part.format_spec or part.conversion or part.equal)
            pieces.append(str(value.value) if plain and isinstance(value, Const) else None)
        elif isinstance(part, nodes.FormattedStringText):
            pieces.append(None if set(part.value) & _ESCAPING else part.value)
    return Sym("f-string", node) if None in pieces else Const("".join(piece for piece in pieces if piece is not None))


def _ellipsis(interp: Tracer, node: nodes.Ellipsis, env: Env) -> Value:
    return ELLIPSIS


# -- containers ------------------------------------------------------------------------------------------------


def _sequence(interp: Tracer, node: nodes.Tuple | nodes.List | nodes.Set, env: Env) -> Value:
    items: list[Value] = []
    open_, rest = False, None
    for element in node.elements:
        value = interp.evaluate(element.value, env)
        if not isinstance(element, nodes.StarredElement):
            items.append(value)
        elif isinstance(value, Seq):
            items.extend(value.items)
            open_ |= value.open
        else:
            open_, rest = True, value if is_of_shape(value) and element is node.elements[-1] else None
        if open_:
            break  # the position of what follows is not known
    if isinstance(node, nodes.Set):
        return iteration.a_set(items, open_)
    return Seq(tuple(items), "tuple" if isinstance(node, nodes.Tuple) else "list", open_, rest)


def _dictionary(interp: Tracer, node: nodes.Dict, env: Env) -> Value:
    items: list[tuple[Value, Value]] = []
    open_ = False
    for element in node.elements:
        if isinstance(element, nodes.DictElement):
            items.append((interp.evaluate(element.key, env), interp.evaluate(element.value, env)))
        else:
            inner = interp.evaluate(element.value, env)
            if isinstance(inner, Dictionary):
                items.extend(inner.items)
                open_ |= inner.open
            else:
                open_ = True
    return Dictionary(tuple(items), open_)


# -- operators -------------------------------------------------------------------------------------------------


def _binary(interp: Tracer, node: nodes.BinaryOperation, env: Env) -> Value:
    left, right = interp.evaluate(node.left, env), interp.evaluate(node.right, env)
    symbol, name = BINARY[node.operator.__class__]
    return binary(interp, node, symbol, name, left, right)


def augmented(interp: Tracer, node: nodes.AugAssign, env: Env) -> None:
    """`target op= value`: on a ref a load, an operation and an "accumulate" store."""
    symbol, name = AUGMENTED[node.operator.__class__]
    if isinstance(node.target, nodes.Subscript):
        owner = interp.evaluate(node.target.value, env)
        index = _index(interp, node.target, env)
        indexing.concretize_indices(interp, node.target, owner, index)
        operand = interp.evaluate(node.value, env)
        for ref in [owner] if isinstance(owner, Ref) else []:
            loaded = Array(indexing.result_shape(ref.shape, index), ref.element)
            result = binary(interp, node, symbol, name, loaded, operand)
            interp.frame.access("accumulate", ref, index, node, result)
        if not isinstance(owner, Ref | Seq | Dictionary | Array):
            interp.frame.mark_untracked()
        return
    operand = interp.evaluate(node.value, env)
    current = interp.evaluate(node.target, env)
    if isinstance(current, Seq) and symbol == "+":
        more = operand if isinstance(operand, Seq) else Seq((), open=True)
        if current.kind == "list":
            interp.mark_outdated(current)
        interp.assign(node.target, Seq(current.items + more.items, current.kind, current.open or more.open), env)
        return
    interp.assign(node.target, binary(interp, node, symbol, name, current, operand, in_place=True), env)


def _unary(interp: Tracer, node: nodes.UnaryOperation, env: Env) -> Value:
    value = interp.evaluate(node.expression, env)
    if isinstance(node.operator, nodes.Not):
        interp.frame.concretize("not", value, node.expression)
        known = truth(value)
        return (machine.computed(interp, (value,), node) or UNKNOWN) if known is None else Const(not known)
    name = UNARY[node.operator.__class__]
    if isinstance(value, Array):
        return interp.frame.op(
            name, node, Arguments([value]), arrays.infer(name, [value], {}, interp.root.x64 is not None), "operator"
        )
    if isinstance(value, Const) and isinstance(value.value, int | float | complex):
        if isinstance(node.operator, nodes.Minus):
            return Const(-value.value)
        if isinstance(node.operator, nodes.BitInvert) and isinstance(value.value, int):
            return Const(~value.value)
        return value
    value = chosen_number(value)
    if not isinstance(value, Sym) or isinstance(node.operator, nodes.Plus):
        return value if isinstance(value, Sym) else UNKNOWN
    if isinstance(node.operator, nodes.Minus):
        rounded = _rounded_up(value)
        if rounded is not None:
            return rounded
        return Sym(f"-{value.text}", value.owner, operation=("-", Const(0), value))
    return Sym(f"~{value.text}", value.owner, operation=("^", value, Const(-1)))


def _rounded_up(value: Sym) -> Value | None:
    """What `-(-a // b)` is of `-a // b`: a quotient that is rounded up, under the one name that it has."""
    symbol, left, right = value.operation or ("", NONE, NONE)
    if symbol != "//" or not isinstance(left, Sym) or left.operation is None or left.operation[:2] != ("-", Const(0)):
        return None
    divided = left.operation[2]
    if not isinstance(divided, Sym | Const) or not isinstance(right, Sym | Const):
        return None
    return symbolic("cdiv", divided, right)


def _boolean(interp: Tracer, node: nodes.BooleanOperation, env: Env) -> Value:
    left = interp.evaluate(node.left, env)
    known = truth(left)
    is_and = isinstance(node.operator, nodes.And)
    interp.frame.concretize("and" if is_and else "or", left, node.left)
    if known is not None and known is not is_and:
        return left
    if known is not None:
        return interp.evaluate(node.right, env)
    with interp.branches().take(Guard("if", left, interp.frame.site(node.left), not is_and)):
        right = interp.evaluate(node.right, env)
    # The left side would be as false, or as true: where it is, `x or 128` may be another number, `x or True` is a flag.
    if truth(right) is False if is_and else right == _TRUE:
        return right
    interp.frame.short_circuit_rhs = node, right
    return UNKNOWN if isinstance(left, Array) or isinstance(right, Array) else join(left, right)


def _comparison(interp: Tracer, node: nodes.Comparison, env: Env) -> Value:
    left = interp.evaluate(node.left, env)
    result: Value = UNKNOWN
    links: list[bool | None] = []
    for at, target in enumerate(node.comparisons):
        right = interp.evaluate(target.comparator, env)
        result = compare(interp, node, target.operator, left, right)
        links.append(truth(result))
        if at + 1 < len(node.comparisons):
            interp.frame.concretize("chain", result, node)
        left = right
    if len(links) == 1:
        return result
    return Const(False) if False in links else UNKNOWN if None in links else Const(True)


def _if_expression(interp: Tracer, node: nodes.IfExp, env: Env) -> Value:
    condition = interp.evaluate(node.test, env)
    interp.frame.concretize("ternary", condition, node.test)
    known = truth(condition)
    if known is not None:
        return interp.evaluate(node.body if known else node.orelse, env)
    before, certain = env.vars, env.facts
    narrowings, facts = narrowed(interp, node.test, env), facts_of(interp, node.test, env)
    values, branches = [], interp.branches()
    for negated, branch in enumerate((node.body, node.orelse)):
        env.vars, env.facts = {**before, **narrowings[negated]}, {**certain, **facts[negated]}
        with branches.take(Guard("if", condition, interp.frame.site(node.test), bool(negated))):
            values.append(interp.evaluate(branch, env))
        env.vars, env.facts = before, certain
    return join(*values)


# -- functions, calls, attributes, subscripts --------------------------------------------------------------------


def _lambda(interp: Tracer, node: nodes.Lambda, env: Env) -> Value:
    return Func("<lambda>", node, interp.frame.piece, env.module, env)


def _named(interp: Tracer, node: nodes.NamedExpr, env: Env) -> Value:
    value = interp.evaluate(node.value, env)
    interp.assign(node.target, value, env)
    return value


def arguments_of(interp: Tracer, node: nodes.Call, env: Env) -> Arguments:
    """What a call passes."""
    arguments = Arguments()
    scattered = False  # after a `*args` of unknown length: positions are unknown
    for argument in node.args:
        value = interp.evaluate(argument.value, env)
        if scattered and argument.star != "**" and argument.keyword is None:
            interp.escape_refs(Arguments([value]), node)
        elif argument.star == "*":
            items = items_of(value)
            arguments.positional.extend(value.items if isinstance(value, Seq) else items or ())
            scattered = items is None
            arguments.open |= scattered
        elif argument.star == "**":
            if isinstance(value, Dictionary):
                for key, item in value.items:
                    if isinstance(key, Const) and isinstance(key.value, str):
                        arguments.keywords[key.value] = item
                    else:
                        arguments.open = True
                arguments.open |= value.open
            else:
                arguments.open = True
        elif argument.keyword is not None:
            arguments.keywords[argument.keyword.value] = value
        else:
            arguments.positional.append(value)
    return arguments


def _call(interp: Tracer, node: nodes.Call, env: Env) -> Value:
    callee = interp.evaluate(node.func, env)
    arguments = arguments_of(interp, node, env)
    if isinstance(callee, CallResult) and callee.function.startswith("method:"):
        return members.call_method(interp, callee, arguments, node, env)
    wrapper = launching.wrapper(node.func, callee)
    if wrapper is not None:
        return launching.call_wrapper(interp, *wrapper, callee, arguments, node)
    result = interp.call(callee, arguments, node)
    interp.frame.failed_call = node if isinstance(callee, Func) and interp.call_failed else None
    return result


def _attribute(interp: Tracer, node: nodes.Attribute, env: Env) -> Value:
    owner = interp.evaluate(node.value, env)
    value = members.attribute_of(interp, owner, node.attr.value, node)
    if interp.kernel is not None and isinstance(value, Array) and isinstance(owner, Instance):
        name = node.value.value if isinstance(node.value, nodes.Name) else None
        made_outside = name is not None and (env.captures(name, interp.kernel) or _is_bound(owner, interp.kernel))
        if made_outside and node.attr.value not in owner.set_in_kernels:
            interp.frame.record(Capture(f"{name}.{node.attr.value}", value, interp.frame.site(node)))
    return _up_to_date(interp, value)


def _is_bound(owner: Instance, kernel: KernelTrace) -> bool:
    """Whether the kernel is a method of the object, or has it bound by `partial`."""
    return any(
        owner is value
        for body in kernel.launch.bodies
        for value in (body.method_of, *body.bound, *(bound for _, bound in body.keywords))
    )


def _index(interp: Tracer, node: nodes.Subscript, env: Env) -> Value:
    parts: list[Value] = []
    open_ = False
    for element in node.slice:
        if isinstance(element.slice, nodes.Slice):
            piece = element.slice
            parts.append(
                Slice(
                    NONE if piece.lower is None else interp.evaluate(piece.lower, env),
                    NONE if piece.upper is None else interp.evaluate(piece.upper, env),
                    NONE if piece.step is None else interp.evaluate(piece.step, env),
                )
            )
        elif isinstance(element.slice, nodes.Index):
            value = interp.evaluate(element.slice.value, env)
            if element.slice.star:
                open_ = not isinstance(value, Seq) or value.open
                parts.extend(value.items if isinstance(value, Seq) else ())
            else:
                parts.append(value)
    if len(parts) == 1 and not open_ and not node.slice[-1].comma:
        return parts[0]
    return Seq(tuple(parts), open=open_)


def _subscript(interp: Tracer, node: nodes.Subscript, env: Env) -> Value:
    owner = interp.evaluate(node.value, env)
    if isinstance(owner, External) and not owner.name.startswith("jax.experimental.pallas"):
        if owner.name.startswith("jaxtyping."):
            sizes = _index(interp, node, env)
            return CallResult(owner.name, as_tuple(sizes), (), interp.frame.site(node))
        return owner  # a generic alias in an annotation
    return _up_to_date(interp, indexing.subscript(interp, node, owner, _index(interp, node, env)))


def store(interp: Tracer, target: nodes.Subscript, value: Value, env: Env) -> None:
    """`owner[index] = value`."""
    owner = interp.evaluate(target.value, env)
    index = _index(interp, target, env)
    with interp.maybe() if isinstance(owner, OneOf) else contextlib.nullcontext():
        indexing.concretize_indices(interp, target, owner, index)
    for option in owner.options if isinstance(owner, OneOf) else (owner,):
        if isinstance(option, Ref):
            interp.frame.access("store", option, index, target, value)
        elif not isinstance(option, Seq | Dictionary | Array | Const):
            interp.frame.mark_untracked()  # a ref that is not seen to be one
    replaced = indexing.with_item(owner, index, value)
    if replaced is not None:
        weight = weight_of(replaced)
        interp.count(weight // _COPIED)
        members.rebind(interp, target.value, owner, replaced if weight <= MAX_WEIGHT else UNKNOWN, env)


def _yield(interp: Tracer, node: nodes.Yield, env: Env) -> Value:
    """The first `yield` of what `contextlib.contextmanager` decorates runs the body of the `with` statement."""
    generator, run = interp.frame.with_body or (None, None)
    if run is not None and interp.frame.stack and interp.frame.stack[-1].node is generator:
        given = NONE if node.value is None else UNKNOWN
        run(interp.evaluate(node.value, env) if isinstance(node.value, nodes.BaseExpression) else given)
    return UNKNOWN


def _await(interp: Tracer, node: nodes.Await, env: Env) -> Value:
    return UNKNOWN


HANDLERS: dict[type, Callable[[Tracer, Any, Env], Value]] = {
    nodes.Name: _name,
    nodes.Integer: _number,
    nodes.Float: _number,
    nodes.Imaginary: _number,
    nodes.SimpleString: _string,
    nodes.ConcatenatedString: _string,
    nodes.FormattedString: _formatted,
    nodes.Ellipsis: _ellipsis,
    nodes.Tuple: _sequence,
    nodes.List: _sequence,
    nodes.Set: _sequence,
    nodes.Dict: _dictionary,
    nodes.ListComp: iteration.comprehension,
    nodes.GeneratorExp: iteration.comprehension,
    nodes.SetComp: iteration.comprehension,
    nodes.DictComp: iteration.dict_comprehension,
    nodes.BinaryOperation: _binary,
    nodes.UnaryOperation: _unary,
    nodes.BooleanOperation: _boolean,
    nodes.Comparison: _comparison,
    nodes.IfExp: _if_expression,
    nodes.Lambda: _lambda,
    nodes.NamedExpr: _named,
    nodes.Call: _call,
    nodes.Attribute: _attribute,
    nodes.Subscript: _subscript,
    nodes.Yield: _yield,
    nodes.Await: _await,
}
