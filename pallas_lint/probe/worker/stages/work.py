"""The work that is in a kernel, as its loops say: what it takes at the least, whatever runs it on a CPU."""

from __future__ import annotations

import math
from typing import Any

from ..launches.launch import Launch, inner_jaxprs, kernel_jaxpr

_OPERATION = 1e-9  # seconds; compiled ones do not take less
_ELEMENT = 5e-11  # seconds for each element of a result


def least_seconds(launch: Launch) -> float:
    """A time below which no interpreter is through with a launch; loops whose turns nobody knows count as one."""
    jaxpr = kernel_jaxpr(launch.record.params)
    return 0.0 if jaxpr is None else launch.points * _seconds(jaxpr)


def _seconds(jaxpr: Any) -> float:
    total = 0.0
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        inner = [_seconds(each) for value in equation.params.values() for each in inner_jaxprs(value)]
        if str(equation.primitive) == "cond":
            total += min(inner, default=0.0)
        elif inner:
            total += equation.params.get("length", 1) * sum(inner)
        else:
            sizes = (math.prod(getattr(out.aval, "shape", ())) for out in equation.outvars)
            total += _OPERATION + _ELEMENT * sum(sizes)
    return total
