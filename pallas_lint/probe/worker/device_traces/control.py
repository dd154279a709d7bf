"""Control flow of a kernel while it is unrolled: branches, loops, scopes, and the indices of grid and mesh."""

from __future__ import annotations

from typing import Any

from ..launches.launch import scan_counts
from .references import UNKNOWN, Buffer, UnknownValue, Unmodelled, View, first_unknown
from .scopes import scoped
from .unroller import Unroller, communicates, rule

_MAX_ROUNDS = 100_000


@rule("program_id")
def _program_id(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    import numpy as np

    axis = equation.params["axis"]
    return [np.int32(run.point[axis]) if axis < len(run.point) else UNKNOWN]


@rule("num_programs")
def _num_programs(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    import numpy as np

    axis = equation.params["axis"]
    return [np.int32(run.grid[axis]) if axis < len(run.grid) else UNKNOWN]


@rule("axis_index")
def _axis_index(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    import numpy as np

    names = equation.params["axis_name"]
    at = 0
    for name in names if isinstance(names, tuple | list) else (names,):
        if name == run.core.axis:
            at = at * run.core.count + run.core.number
            continue
        if name not in run.coordinates:
            raise Unmodelled(f'the axis "{name}", which is none of the mesh of devices', run.place(equation))
        at = at * run.axes.get(name, 1) + run.coordinates[name]
    return [np.int32(at)]


@rule("select_n")
def _select(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    import numpy as np

    which, *cases = values
    if isinstance(which, UnknownValue) or any(isinstance(case, UnknownValue) for case in cases):
        alike = not isinstance(which, UnknownValue) and not np.ndim(which)
        return [cases[int(which)]] if alike else [first_unknown(values)]
    return run.computed("select_n", equation, values) if np.ndim(which) else [cases[int(which)]]


@rule("cond")
def _cond(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    branches = equation.params["branches"]
    which, *operands = values
    if not isinstance(which, UnknownValue):
        return run.run(branches[min(max(int(which), 0), len(branches) - 1)], operands)
    if any(map(communicates, branches)):
        raise Unmodelled("a branch that communicates depends on data", run.place(equation), which)
    # It takes one of them: what each reads and writes may be read and written.
    outcomes = [run.perhaps(branch, operands) for branch in branches]
    return [results[0] if all(_same(results[0], other) for other in results) else UNKNOWN for results in zip(*outcomes)]


def _same(one: Any, other: Any) -> bool:
    import numpy as np

    if one is other:
        return True
    plain = not any(isinstance(value, UnknownValue | Buffer | View) for value in (one, other))
    return plain and np.array_equal(one, other)


@rule("scan")
def _scan(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    import numpy as np

    params = equation.params
    consts, carried = scan_counts(params, len(values))
    constants, carry, arrays = values[:consts], values[consts : consts + carried], values[consts + carried :]
    rounds = range(params["length"])
    communicating = communicates(params["jaxpr"])
    for at in reversed(rounds) if params["reverse"] else rounds:
        if communicating:
            run.looped(f"loop {at}")
        plain = [isinstance(array, UnknownValue | Buffer | View) for array in arrays]
        slices = [UNKNOWN if odd else np.asarray(array)[at] for odd, array in zip(plain, arrays)]
        carry = run.run(params["jaxpr"], [*constants, *carry, *slices])[:carried]
        if communicating:
            run.left()
    return [*carry, *[UNKNOWN] * (len(equation.outvars) - carried)]


@rule("while")
def _while(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    params = equation.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    test, body, carry = values[:first], values[first : first + second], values[first + second :]
    communicating = communicates(params["body_jaxpr"])
    for at in range(_MAX_ROUNDS):
        [goes_on] = run.run(params["cond_jaxpr"], [*test, *carry])
        if isinstance(goes_on, UnknownValue):
            if communicating:
                raise Unmodelled("how often a loop communicates depends on data", run.place(equation), goes_on)
            carry = [value if isinstance(value, Buffer | View) else UNKNOWN for value in carry]
            run.perhaps(params["body_jaxpr"], [*body, *carry])
            return carry
        if not goes_on:
            return carry
        if communicating:
            run.looped(f"loop {at}")
        carry = run.run(params["body_jaxpr"], [*body, *carry])
        if communicating:
            run.left()
    raise Unmodelled(f"a loop of more than {_MAX_ROUNDS} rounds", run.place(equation))


@rule("run_scoped")
def _run_scoped(run: Unroller, equation: Any, values: list[Any]) -> list[Any]:
    axes = equation.params.get("collective_axes") or ()
    if axes and (run.work is None or tuple(axes) != (run.core.axis,)):
        raise Unmodelled("memory that several threads share", run.place(equation))
    jaxpr = equation.params["jaxpr"]
    body = getattr(jaxpr, "jaxpr", jaxpr)
    return run.run(body, [*scoped(run, equation, body, shared=bool(axes))], values)  # it closes over its operands
