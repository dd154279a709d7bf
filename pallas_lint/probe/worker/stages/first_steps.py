"""Outputs that a kernel overwrites as a whole wherever the sequential axes of its grid begin, as scratch is set."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ..device_traces.unroller import INTEGER_OPERATIONS
from ..launches.launch import Launch, kernel_jaxpr


def is_set_first(launch: Launch, at: int, parallel: Container[int]) -> bool:
    """Whether a step at index 0 of all axes that are not `parallel` stores all of operand `at` before it reads any.

    Then no step depends on what a step with another index along the parallel axes left there. False where that is not
    known: behind conditions on operands, in loops, and for kernels of several jaxprs.
    """
    jaxpr = kernel_jaxpr(launch.record.params)
    return jaxpr is not None and _first_use(jaxpr, jaxpr.invars[at], parallel, {}) is True


def _first_use(jaxpr: Any, ref: Any, parallel: Container[int], values: dict[Any, int]) -> bool | None:
    """Whether the first use of a ref is a store of the whole; None where it is not used. `values`: known integers."""
    for equation in jaxpr.eqns:
        name, atoms = str(equation.primitive), equation.invars
        if name == "program_id":
            if equation.params["axis"] not in parallel:
                values[equation.outvars[0]] = 0
        elif name == "cond":
            branches, index = equation.params["branches"], _value(atoms[0], values)
            if index is not None:
                branches = branches[min(index, len(branches) - 1) :][:1]
            uses = {_use_in(branch.jaxpr, atoms[1:], ref, parallel, values) for branch in branches}
            if uses != {None}:
                return uses == {True}
        elif any(atom is ref for atom in atoms):
            whole = name == "swap" and atoms[0] is ref and atoms[1].aval.shape == ref.aval.shape
            return whole and not _is_used(equation.outvars[0], jaxpr)
        elif name in INTEGER_OPERATIONS:
            known = [_value(atom, values) for atom in atoms]
            if None not in known:
                values[equation.outvars[0]] = int(INTEGER_OPERATIONS[name](*known))
    return None


def _value(atom: Any, values: dict[Any, int]) -> int | None:
    import numpy as np

    if not hasattr(atom, "val"):
        return values.get(atom)
    return int(atom.val) if np.ndim(atom.val) == 0 and np.result_type(atom.val).kind in "biu" else None


def _is_used(var: Any, jaxpr: Any) -> bool:
    read = (atom for equation in jaxpr.eqns for atom in equation.invars)
    return any(atom is var for atom in (*read, *jaxpr.outvars))


def _use_in(branch: Any, atoms: list[Any], ref: Any, parallel: Container[int], values: dict[Any, int]) -> bool | None:
    """`_first_use` in a branch that gets the atoms."""
    inner = next((var for var, atom in zip(branch.invars, atoms) if atom is ref), None)
    if inner is None:
        return None
    known = {var: _value(atom, values) for var, atom in zip(branch.invars, atoms)}
    return _first_use(branch, inner, parallel, {var: value for var, value in known.items() if value is not None})
