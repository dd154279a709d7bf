"""The values of a launch's operands that hang on nothing but what is known: constants, and arguments with values.

A jaxpr is run as far as its inputs are known; kernels, and what is of unknown arrays, are not. So the numbers that tell
where a kernel reads (offsets of groups, pages, a mask's blocks) are those that the program gives it, or none.
"""

from __future__ import annotations

import contextlib
from typing import Any

from .launch import equations, jaxprs_in
from .recorder import PRIMITIVES, Record

_LAUNCHES = frozenset(name.removesuffix("_p") for _, name in PRIMITIVES)
_LARGEST = 1 << 20  # elements of a result that is computed
_CALLS = {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"}
_LEFT = {"while", "pure_callback"}  # what may take for ever, and what is the user's own
_CALLS |= {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}


def fill(records: list[Record], program: Any) -> None:
    """Complete the `values` of the records by what a program (a closed jaxpr) that makes these launches knows."""
    _Run(records).closed(program, [None] * len(program.jaxpr.invars))


class _Run:
    def __init__(self, records: list[Record]) -> None:
        self.records = records

    def closed(self, program: Any, values: list[Any]) -> list[Any]:
        """The results of a jaxpr; None where an operand's or result's value is not known."""
        jaxpr = getattr(program, "jaxpr", program)
        known: dict[Any, Any] = dict(zip(jaxpr.invars, values))
        known |= dict(zip(jaxpr.constvars, getattr(program, "consts", ())))

        def value(atom: Any) -> Any:
            return atom.val if hasattr(atom, "val") else known.get(atom)

        for equation in jaxpr.eqns:
            results = self._equation(equation, [value(atom) for atom in equation.invars])
            known.update(zip(equation.outvars, results))
        return [value(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, values: list[Any]) -> list[Any]:
        name = str(equation.primitive)
        unknown = [None] * len(equation.outvars)
        inner = jaxprs_in(equation)
        if name in _LAUNCHES:
            self._launch(equation, values)
            return unknown
        if name in _CALLS and len(inner) == 1:
            return self.closed(inner[0], values)
        within = any(map(_launches, inner))
        if within:
            # Of what a loop hands to its body only the constants in it are known; a mesh's devices know what all have.
            for jaxpr in inner:
                count = len(getattr(jaxpr, "jaxpr", jaxpr).invars)
                self.closed(jaxpr, _on_every_device(equation, values) or [None] * count)
        if within or equation.effects or name in _LEFT or any(value is None for value in values):
            return unknown
        if any(getattr(var.aval, "size", _LARGEST + 1) > _LARGEST for var in equation.outvars):
            return unknown
        return computed(equation, values)

    def _launch(self, equation: Any, values: list[Any]) -> None:
        import numpy as np

        for record in self.records:
            if not _is(record, equation):
                continue
            for at, value in enumerate(values):
                if value is not None and record.values[at] is None:
                    with contextlib.suppress(TypeError):  # keys of random numbers are no arrays for NumPy
                        record.values[at] = np.asarray(value)
            return


def _is(record: Record, equation: Any) -> bool:
    """Whether a launch was recorded when this equation was made."""
    if record.primitive is not equation.primitive or len(record.values) != len(equation.invars):
        return False
    names = ("jaxpr", "jaxprs", "mesh")
    return all(record.params.get(name) is equation.params.get(name) for name in names)


def _on_every_device(equation: Any, values: list[Any]) -> list[Any]:
    """What the body of a `shard_map` is given, as far as each device is given the same; empty for what is none."""
    specs = equation.params.get("in_specs") if str(equation.primitive) == "shard_map" else None
    if specs is None:  # before 0.6 they are told in another way
        return []
    return [None if any(spec) else value for spec, value in zip(specs, values)]


def _launches(jaxpr: Any) -> bool:
    return any(str(equation.primitive) in _LAUNCHES for equation in equations(jaxpr))


def computed(equation: Any, values: list[Any]) -> list[Any]:
    """The results of an equation all of whose operands are known."""
    import jax

    try:
        with jax.ensure_compile_time_eval():
            told = equation.primitive.get_bind_params(equation.params)
            functions, params = told if isinstance(told, tuple) else ((), told)  # to 0.11 functions stand apart
            found = equation.primitive.bind(*functions, *values, **params)
    except Exception:  # it is of another device, or of an axis that is not here
        return [None] * len(equation.outvars)
    return list(found) if equation.primitive.multiple_results else [found]
