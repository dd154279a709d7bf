"""What a condition says of a local name: `isinstance(x, jax.Array)`, `x is None`, and their negations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from pallas_lint.kernels.values import NONE, UNKNOWN, Array, Choice, External, Ref, Seq, Value, options

if TYPE_CHECKING:
    from pallas_lint.kernels.interpreter import Interpreter
    from pallas_lint.kernels.scope import Bindings, Env

_ARRAYS = frozenset(("jax.Array", "jax.core.Tracer", "jax.numpy.ndarray"))


def narrowed(i: Interpreter, test: cst.BaseExpression, env: Env) -> tuple[Bindings, Bindings]:
    """What is bound where an undecided condition holds and where it does not, as far as it says more than before."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        holds, fails = narrowed(i, test.expression, env)
        return fails, holds
    if isinstance(test, cst.Call) and isinstance(test.func, cst.Name) and test.func.value == "isinstance":
        return _instance(i, test, env)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
        value = _local(test.left, env)
        if isinstance(right, cst.Name) and right.value == "None" and isinstance(value, Choice):
            assert isinstance(test.left, cst.Name)
            none: Bindings = {test.left.value: NONE}
            other: Bindings = {test.left.value: _of([option for option in value.options if option != NONE])}
            if isinstance(operator, cst.Is):
                return none, other
            if isinstance(operator, cst.IsNot):
                return other, none
    return {}, {}


def _local(node: cst.BaseExpression, env: Env) -> Value | None:
    return env.vars.get(node.value) if isinstance(node, cst.Name) else None


def _instance(i: Interpreter, test: cst.Call, env: Env) -> tuple[Bindings, Bindings]:
    if len(test.args) != 2:
        return {}, {}
    name, value = test.args[0].value, _local(test.args[0].value, env)
    if value is None or not any(isinstance(option, Array) for option in options(value)):
        return {}, {}
    assert isinstance(name, cst.Name)
    kinds = i.evaluate(test.args[1].value, env)
    names = {kind.name for kind in (kinds.items if isinstance(kinds, Seq) else (kinds,)) if isinstance(kind, External)}
    rest = {name.value: _of([option for option in options(value) if not isinstance(option, Array | Ref)])}
    if names & _ARRAYS:
        return {}, rest
    return (rest, {}) if names and all(kind.startswith("builtins.") for kind in names) else ({}, {})


def _of(found: list[Value]) -> Value:
    return UNKNOWN if not found else found[0] if len(found) == 1 else Choice(tuple(found))
