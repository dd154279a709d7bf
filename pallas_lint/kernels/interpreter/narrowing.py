"""Narrowing of local names by conditions: `isinstance(x, jax.Array)`, `x is None`, and their negations.

Also of symbols: `x.shape[1] == 1`, `n % block == 0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.dtypes import dtype_of
from pallas_lint.kernels.model.symbols import arithmetic
from pallas_lint.kernels.model.values import (
    NONE,
    UNKNOWN,
    Array,
    Const,
    DType,
    External,
    OneOf,
    Ref,
    Seq,
    Sym,
    Value,
    as_tuple,
    options,
)
from pallas_lint.records import evolve
from pallas_lint.syntax import nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from pallas_lint.kernels.model.scope import Bindings, Env, Facts
    from pallas_lint.kernels.model.tracer import Tracer

_ACTING = (nodes.Call, nodes.NamedExpr, nodes.Await, nodes.Yield, nodes.Lambda, nodes.CompFor)
_ARRAYS = frozenset(("jax.Array", "jax.core.Tracer", "jax.numpy.ndarray"))


def narrowed(interp: Tracer, test: nodes.BaseExpression, env: Env) -> tuple[Bindings, Bindings]:
    """The bindings that an undecided condition narrows, where it holds and where it does not."""
    if isinstance(test, nodes.UnaryOperation) and isinstance(test.operator, nodes.Not):
        holds, fails = narrowed(interp, test.expression, env)
        return fails, holds
    if isinstance(test, nodes.Call) and nodes.is_name(test.func, "isinstance"):
        return _instance(interp, test, env)
    if isinstance(test, nodes.Comparison) and len(test.comparisons) == 1:
        operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
        value = _local(test.left, env)
        if nodes.is_name(right, "None") and isinstance(value, OneOf):
            assert isinstance(test.left, nodes.Name)
            none: Bindings = {test.left.value: NONE}
            other: Bindings = {test.left.value: _of([option for option in value.options if option != NONE], value)}
            if isinstance(operator, nodes.Is):
                return none, other
            if isinstance(operator, nodes.IsNot):
                return other, none
    return {}, {}


def facts_of(interp: Tracer, test: nodes.BaseExpression, env: Env) -> tuple[Facts, Facts]:
    """The facts on symbols where a condition holds, and where it does not."""
    if isinstance(test, nodes.UnaryOperation) and isinstance(test.operator, nodes.Not):
        holds, fails = facts_of(interp, test.expression, env)
        return fails, holds
    if isinstance(test, nodes.BooleanOperation):
        left, right = facts_of(interp, test.left, env), facts_of(interp, test.right, env)
        if isinstance(test.operator, nodes.And):
            return {**left[0], **right[0]}, {}
        return {}, {**left[1], **right[1]}
    if isinstance(test, nodes.Comparison) and len(test.comparisons) == 1:
        operator, compared = test.comparisons[0].operator, test.comparisons[0].comparator
        if isinstance(operator, nodes.GreaterThan) and isinstance(compared, nodes.Integer) and compared.value == "0":
            return {}, _no_remainder(interp, test.left, env)
        if not isinstance(operator, nodes.Equal | nodes.NotEqual) or not _is_plain(test):
            return _bounds(interp, test, env)
        sides = (interp.evaluate(test.left, env), interp.evaluate(test.comparisons[0].comparator, env))
        equal = {**_equal(*sides), **_equal(*reversed(sides))}
        return (equal, {}) if isinstance(operator, nodes.Equal) else ({}, equal)
    if isinstance(test, nodes.Comparison) and all(isinstance(each.operator, nodes.Equal) for each in test.comparisons):
        return _all_equal(interp, test, env) if _is_plain(test) else {}, {}
    if isinstance(test, nodes.BinaryOperation | nodes.Name):
        return {}, _no_remainder(interp, test, env)
    return {}, {}


def _all_equal(interp: Tracer, test: nodes.Comparison, env: Env) -> Facts:
    """The facts where `k.shape == v.shape == (b, s, d)` holds: each side equals the known one."""
    sides = [interp.evaluate(node, env) for node in (test.left, *(each.comparator for each in test.comparisons))]
    return {symbol: fact for one in sides for other in sides for symbol, fact in _equal(one, other).items()}


# How much more than the right side the left one is at least where a comparison holds, and the right where it fails.
_LEAST = {nodes.GreaterThanEqual: 0, nodes.GreaterThan: 1}
_LEAST_WHERE_FALSE = {nodes.LessThan: 0, nodes.LessThanEqual: 1}


def _bounds(interp: Tracer, test: nodes.Comparison, env: Env) -> tuple[Facts, Facts]:
    """The facts of a comparison of a size with a number: where `n < 4096` fails, `max(n, 4096)` is n."""
    operator, compared = test.comparisons[0].operator, test.comparisons[0].comparator
    more = _LEAST.get(type(operator)), _LEAST_WHERE_FALSE.get(type(operator))
    if more == (None, None) or not isinstance(compared, nodes.Integer) or not _is_plain(test):
        return {}, {}
    size, least = interp.evaluate(test.left, env), interp.evaluate(compared, env)
    if not isinstance(size, Sym) or not isinstance(least, Const) or least.kind is not int:
        return {}, {}
    found: list[Facts] = [{} if plus is None else {_at_least(size, least.value + plus): size} for plus in more]
    return found[0], found[1]


def _at_least(size: Sym, number: int) -> Sym:
    """The name of `max(size, number)`."""
    larger = arithmetic("max", size, Const(number))
    assert isinstance(larger, Sym)
    return larger


def _no_remainder(interp: Tracer, node: nodes.BaseExpression, env: Env) -> Facts:
    """The fact where a remainder, `n % block` or a name of one, is false: it is 0."""
    if not isinstance(node, nodes.BinaryOperation | nodes.Name) or not _is_plain(node):
        return {}
    value = interp.evaluate(node, env)
    is_remainder = isinstance(value, Sym) and value.operation is not None and value.operation[0] == "%"
    return _equal(value, Const(0)) if is_remainder else {}


def _is_plain(node: nodes.BaseExpression) -> bool:
    """Whether evaluating it again has no effects: it contains only operations on Python's numbers, and `len`."""
    return not any(isinstance(inner, _ACTING) and not _is_length(inner) for inner in walk(node))


def _is_length(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Call) and nodes.is_name(node.func, "len")


def facts_of_unpacking(shape: Sym, parts: list[Value]) -> Facts:
    """The facts that `rows, columns = x.shape` gives: it raises where `x` has another number of dimensions."""
    if not shape.text.endswith(".shape"):
        return {}
    rank = Sym(f"{shape.text.removesuffix('.shape')}.ndim", shape.owner)
    return {shape: Seq(tuple(parts)), rank: Const(len(parts))}


def _equal(left: Value, right: Value) -> Facts:
    """The facts that `left == right` gives on the symbols in `left`."""
    if isinstance(left, Sym) and left.text.endswith(".dtype"):
        dtype = dtype_of(right)
        return {} if dtype is None else {left: DType(dtype)}
    if isinstance(left, Sym) and (isinstance(right, Const) or _is_shape(right)):
        return {left: right}
    if isinstance(left, Seq) and isinstance(right, Seq) and len(left.items) == len(right.items):
        found: Facts = {}
        for one, other in zip(left.items, right.items, strict=True):
            found.update(_equal(one, other))
        return {} if left.open or right.open else found
    return {}


def _is_shape(value: Value) -> bool:
    """Whether it is a tuple of numbers, some of which may only have names."""
    return isinstance(value, Seq) and not value.open and all(isinstance(item, Const | Sym) for item in value.items)


def _local(node: nodes.BaseExpression, env: Env) -> Value | None:
    return env.vars.get(node.value) if isinstance(node, nodes.Name) else None


def _instance(interp: Tracer, test: nodes.Call, env: Env) -> tuple[Bindings, Bindings]:
    if len(test.args) != 2:
        return {}, {}
    name, value = test.args[0].value, _local(test.args[0].value, env)
    if value is None or not any(isinstance(option, Array) for option in options(value)):
        return {}, {}
    assert isinstance(name, nodes.Name)
    kinds = interp.evaluate(test.args[1].value, env)
    names = {kind.name for kind in as_tuple(kinds) if isinstance(kind, External)}
    rest = {name.value: _of([option for option in options(value) if not isinstance(option, Array | Ref)], value)}
    if names & _ARRAYS:
        return {}, rest
    return (rest, {}) if names and all(kind.startswith("builtins.") for kind in names) else ({}, {})


def _of(found: list[Value], value: Value) -> Value:
    """The value where it is one of these options."""
    if len(found) > 1 and isinstance(value, OneOf):
        return evolve(value, options=tuple(found))
    return found[0] if len(found) == 1 else UNKNOWN
