"""The time that interpreting a kernel takes: a lower bound from its loops, and as measured with a few grid steps."""

from __future__ import annotations

import math
import time
from typing import Any

from ..budget import used
from ..launches.launch import Launch, inner_jaxprs, kernel_jaxpr
from . import interpret, quick_compiles

_OPERATION = 1e-9  # seconds; compiled ones do not take less
_ELEMENT = 5e-11  # seconds for each element of a result


def least_seconds(launch: Launch) -> float:
    """A lower bound of the time to interpret a launch; loops with an unknown number of iterations count as one."""
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


_MORE_STEPS = (8, 64)  # than one, until they take clearly longer than what is done once


def seconds_a_step(launch: Launch) -> float | None:
    """How long an interpreter takes for a grid point, from runs of a few; None where it does not run so few.

    Raises Missing where its operands are too large.
    """
    interpret.check_size(launch)
    mapping = launch.record.params.get("grid_mapping")
    if mapping is None or not launch.grid or not all(isinstance(size, int) for size in mapping.grid):
        return None
    small = launch.points <= interpret.MAX_POINTS and launch.backend in (None, "tpu")
    params = (interpret.tpu_interpreter(cores=launch.cores) if small else None) or True
    avals, known = launch.record.avals, launch.record.values
    values = [_zeros(aval) if value is None else value for aval, value in zip(avals, known)]
    found = 0.0
    try:
        one = _seconds_of(launch, values, params, mapping, 1)
        for steps in _MORE_STEPS:
            more = _seconds_of(launch, values, params, mapping, steps)
            found = max(more - one, 0.0) / (steps - 1)
            if more > 2 * one:
                break
    except Exception:
        return None
    finally:
        interpret.reset()
    return found


def _seconds_of(launch: Launch, values: list[Any], params: Any, mapping: Any, steps: int) -> float:
    """How long that many steps take once they are compiled."""
    import jax

    largest = max(mapping.grid)
    at = mapping.grid.index(largest)
    grid = tuple(min(steps, largest) if axis == at else 1 for axis in range(len(mapping.grid)))

    def call(*given: Any) -> Any:
        return launch.record.bind(*given, interpret=params, grid_mapping=mapping.replace(grid=grid))

    with quick_compiles.of_launch(launch):
        compiled = jax.jit(call).lower(*values).compile()
        taken = []
        for _ in range(3):  # the first one touches memory for the first time
            wall, cpu = time.perf_counter(), time.process_time()
            jax.block_until_ready(compiled(*values))
            taken.append(used(wall, cpu))
        return min(taken)


def _zeros(aval: Any) -> Any:
    import numpy as np

    return np.zeros(aval.shape, aval.dtype)
