"""First reads of a kernel's references."""

from __future__ import annotations

from typing import Any

from ...protocol import Place
from ..launches import locate
from ..launches.launch import Launch, Operand, jaxprs_in, kernel_jaxpr

_READS = ("get", "masked_load", "load", "addupdate")


def first(launch: Launch, operand: Operand) -> list[Place]:
    """The places of the first operation, in the order of the text, that reads the operand."""
    jaxpr = kernel_jaxpr(launch.record.params)
    at = next((number for number, each in enumerate(launch.operands) if each is operand), None)
    if jaxpr is None or at is None or at >= len(jaxpr.invars):
        return []
    return _first(jaxpr, jaxpr.invars[at])


def _first(jaxpr: Any, variable: Any) -> list[Place]:
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        positions = [at for at, each in enumerate(equation.invars) if each is variable]
        if not positions:
            continue
        if str(equation.primitive) in _READS and positions[0] == 0:
            return locate.of_equation(equation)
        for inner in jaxprs_in(equation):
            found = [_first(inner, each) for each in _within(inner, positions, len(equation.invars))]
            if any(found):
                return next(filter(None, found))
    return []


def _within(jaxpr: Any, positions: list[int], count: int) -> list[Any]:
    """The variables of an operation's inner jaxpr that its operands at these positions are: the last ones match."""
    body = getattr(jaxpr, "jaxpr", jaxpr)
    for variables in (body.constvars, body.invars):
        ahead = count - len(variables)
        if variables and ahead >= 0:
            return [variables[at - ahead] for at in positions if at >= ahead]
    return []
