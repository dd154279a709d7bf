"""Bisection of a kernel that a compiler dies on: the operation without which it does not.

The operations of the kernel are put out one after the other, those of one primitive on one line together: each is
replaced by zeros of its type, and the rest is compiled in a child that may die as the first did.
"""

from __future__ import annotations

from typing import Any

from ...protocol import Place
from ..launches import locate
from ..launches.launch import equations, inner_jaxprs, jaxprs_in, kernel_jaxpr
from ..launches.recorder import Record

# What compilers have died on before; these are tried first.
_SUSPECTS = (
    "argmax",
    "argmin",
    "reshape",
    "broadcast_in_dim",
    "concatenate",
    "transpose",
    "rsqrt",
    "squeeze",
    "gather",
)

Group = tuple[str, str]  # primitive, place


def groups(record: Record) -> dict[Group, list[Place]]:
    """The operations that can be put out, the most suspect first, with their places."""
    found: dict[Group, list[Place]] = {}
    for equation in equations(kernel_jaxpr(record.params)):
        if _replaceable(equation):
            found.setdefault(_group(equation), locate.of_equation(equation))
    return dict(sorted(found.items(), key=lambda item: _rank(item[0][0])))


def without(record: Record, group: Group) -> Record:
    """The launch with the operations of a group replaced by zeros."""
    jaxpr = _replaced(kernel_jaxpr(record.params), group)
    return Record(record.primitive, {**record.params, "jaxpr": jaxpr}, record.avals, record.values, record.stack)


def _rank(primitive: str) -> int:
    return next((at for at, name in enumerate(_SUSPECTS) if name in primitive), len(_SUSPECTS))


def _group(equation: Any) -> Group:
    places = locate.of_equation(equation)
    where = f"{places[0]['file']}:{places[0]['line']}" if places else ""
    return str(equation.primitive), where


def _replaceable(equation: Any) -> bool:
    """Whether the operation makes arrays and does nothing else."""
    if getattr(equation, "effects", None) or jaxprs_in(equation):
        return False
    if any("Ref" in type(getattr(var, "aval", None)).__name__ for var in equation.invars):
        return False
    return all(getattr(var.aval, "shape", ()) != () for var in equation.outvars) and bool(equation.outvars)


def _replaced(jaxpr: Any, group: Group) -> Any:
    if not hasattr(jaxpr, "eqns"):  # closed
        return jaxpr.replace(jaxpr=_replaced(jaxpr.jaxpr, group))
    kept = []
    for equation in jaxpr.eqns:
        if _replaceable(equation) and _group(equation) == group:
            kept += [_zeros(equation, var) for var in equation.outvars]
            continue
        params = {name: _replaced_in(value, group) for name, value in equation.params.items()}
        kept.append(equation.replace(params=params))
    return jaxpr.replace(eqns=kept)


def _replaced_in(value: Any, group: Group) -> Any:
    if not inner_jaxprs(value):
        return value
    if isinstance(value, tuple | list):
        return type(value)(_replaced_in(each, group) for each in value)
    return _replaced(value, group)


def _zeros(equation: Any, var: Any) -> Any:
    """An equation that gives zeros to a variable."""
    import jax

    aval = var.aval
    made = jax.make_jaxpr(lambda: jax.lax.full(aval.shape, 0, aval.dtype))().jaxpr
    return made.eqns[-1].replace(outvars=[var], source_info=equation.source_info)
