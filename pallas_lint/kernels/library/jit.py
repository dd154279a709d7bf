"""The result of `jax.jit`: its traced parameters, and the sharding of its arguments and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.model.values import NONE, Const, Func, Seq, Sym, Value
from pallas_lint.records import evolve
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments


def jit(func: Value, arguments: Arguments) -> Value:
    """The function under `jax.jit` with these arguments (those after the function)."""
    if not isinstance(func, Func):
        return func
    func = evolve(func, program=shardings_of(arguments))
    if not isinstance(func.node, nodes.FunctionDef):
        return func
    parameters = func.node.params
    positional = [param.name.value for param in parameters.positional][len(func.bound) :]
    bound = {name for name, _ in func.keywords}  # by a `partial` inside: no arguments of what is jitted
    names = {*positional, *(param.name.value for param in parameters.kwonly_params)} - bound
    static = _static(arguments, positional)
    return func if static is None else evolve(func, jitted=frozenset(names - static))


def shardings_of(arguments: Arguments) -> tuple[Value, ...]:
    """The shardings of operands and results that `jax.jit` gets with these arguments."""
    given = (arguments.keywords.get(name, NONE) for name in ("in_shardings", "out_shardings"))
    return tuple(value for value in given if value != NONE)


def _static(arguments: Arguments, positional: list[str]) -> set[str] | None:
    """The parameters that are not traced; None where they are not known."""
    if arguments.open:
        return None
    found: set[str] = set()
    for keyword in ("static_argnames", "static_argnums"):
        value = arguments.keywords.get(keyword, Seq(()))
        items = value.items if isinstance(value, Seq) and not value.open else (value,)
        for item in items:
            parameter = item.value if isinstance(item, Const) else None
            if isinstance(parameter, str):
                found.add(parameter)
            elif isinstance(parameter, int) and -len(positional) <= parameter < len(positional):
                found.add(positional[parameter])
            elif item != Const(None):
                return None
    return found


def traced(func: Func, name: str, value: Value, owner: object) -> Value:
    """A value as the function's body gets it: numbers are tracers where the parameter is traced, known or not."""
    if name not in func.jitted:
        return value
    if isinstance(value, Const) and isinstance(value.value, int | float | complex):
        return Sym(name, owner, traced=True)
    return evolve(value, traced=True) if isinstance(value, Sym) else value


def is_traced(value: Value) -> bool:
    """Whether it is a tracer, or computed from one."""
    if not isinstance(value, Sym):
        return False
    return value.traced or (value.operation is not None and any(is_traced(part) for part in value.operation[1:]))
