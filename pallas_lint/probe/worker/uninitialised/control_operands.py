"""Operands whose values decide whether and where a kernel writes its outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..launches.launch import Launch, jaxprs_in, kernel_jaxpr, scan_counts

_STORES = ("swap", "masked_swap", "addupdate")
_LOADS = ("get", "masked_load", "load")
_NAMES = frozenset[str]
_NONE: _NAMES = frozenset()


def outputs(launch: Launch) -> dict[str, list[str]]:
    """The names of those operands for each output of which they are known; none where nothing decides.

    They are lengths of copies, indices of pages, flags: another value of theirs, and other parts are written.
    """
    jaxpr = kernel_jaxpr(launch.record.params)
    if jaxpr is None or len(jaxpr.invars) != len(launch.operands):
        return {}
    flow = _SteeringFlow()
    for operand in launch.operands:
        if operand.role in ("prefetch", "in"):
            flow.held[operand.name] = frozenset({operand.name})
    for _ in range(2):  # what is stored late is read early in the next step
        flow.run(jaxpr, [_Value(_NONE, operand.name) for operand in launch.operands], _NONE)
    # Index maps of blocks may look at what is prefetched, too.
    mapped = any(operand.role == "prefetch" for operand in launch.operands)
    found = {}
    for operand in launch.operands:
        names = sorted(flow.steered.get(operand.name, _NONE))
        if operand.role == "out" and (names or operand.whole or not mapped):
            found[operand.name] = names
    return found


@dataclass(frozen=True)
class _Value:
    """A value of the kernel's: the operands that it is computed from, and of a reference the buffer that it is to."""

    names: _NAMES = _NONE
    buffer: str | None = None


@dataclass
class _SteeringFlow:
    """`held`: the operands that the contents of buffers come from; `steered`: those that decide what is written."""

    held: dict[str, _NAMES] = field(default_factory=dict)
    steered: dict[str, _NAMES] = field(default_factory=dict)

    def run(self, jaxpr: Any, given: list[_Value], guards: _NAMES) -> list[_Value]:
        """The results of a jaxpr that runs only for some values of the operands `guards`."""
        body = getattr(jaxpr, "jaxpr", jaxpr)
        # The last operands of an operation are its inner jaxpr's, or those that this closes over.
        variables = body.constvars if body.constvars and len(body.constvars) == len(given) else body.invars
        values = dict(zip(reversed(variables), reversed(given)))

        def value(atom: Any) -> _Value:
            return _Value() if hasattr(atom, "val") else values.get(atom, _Value())

        for equation in body.eqns:
            results = self._equation(equation, [value(atom) for atom in equation.invars], guards)
            values.update(zip(equation.outvars, results))
        return [value(atom) for atom in body.outvars]

    def _equation(self, equation: Any, given: list[_Value], guards: _NAMES) -> list[_Value]:
        name, params = str(equation.primitive), equation.params
        plain = [each for each in given if each.buffer is None]
        if name == "dma_start":
            parts = params["tree"].unflatten(given)
            target = parts[2:4] if len(parts) == 9 else parts[1:2]
            # Where it reads decides what is written, and not where.
            value = _named(*parts) | self.held.get(_reference(parts[0]) or "", _NONE)
            self._write(_reference(target[0]), guards | _named(*target, parts[-1]), value)
        elif name in _STORES and given[0].buffer is not None:
            where = given[2:] if name == "swap" else plain[:-1]
            self._write(given[0].buffer, guards | given[0].names | _union(where), _union(plain))
        elif name == "cond":
            return _joined(self.run(each, given[1:], guards | given[0].names) for each in params["branches"])
        elif name == "while":
            return self._while(params, given, guards)
        elif name == "scan":
            constants, carried = scan_counts(params, len(given))
            first = self.run(params["jaxpr"], given, guards)[:carried]
            again = [*given[:constants], *first, *given[constants + carried :]]
            return self.run(params["jaxpr"], again, guards)
        elif inner := jaxprs_in(equation):
            return _joined(self.run(each, given, guards) for each in inner)
        names, buffer = _union(given), next((each.buffer for each in given if each.buffer is not None), None)
        if name in _LOADS and buffer is not None:
            return [_Value(names | self.held.get(buffer, _NONE))] * len(equation.outvars)
        return [_Value(names, buffer if "ref" in name else None)] * len(equation.outvars)

    def _while(self, params: dict[str, Any], given: list[_Value], guards: _NAMES) -> list[_Value]:
        first, second = params["cond_nconsts"], params["body_nconsts"]
        test, body, carry = given[:first], given[first : first + second], given[first + second :]
        for _ in range(2):
            goes_on = _union(self.run(params["cond_jaxpr"], [*test, *carry], guards))
            carry = _joined([carry, self.run(params["body_jaxpr"], [*body, *carry], guards | goes_on)])
        return carry

    def _write(self, buffer: str | None, steering: _NAMES, value: _NAMES) -> None:
        if buffer is not None:
            self.steered[buffer] = self.steered.get(buffer, _NONE) | steering
            self.held[buffer] = self.held.get(buffer, _NONE) | value


def _reference(ref: Any) -> str | None:
    """The buffer of an end of a copy: a reference, or from 0.9 on one with its transforms."""
    ref = getattr(ref, "ref", ref)
    return ref.buffer if isinstance(ref, _Value) else None


def _named(*parts: Any) -> _NAMES:
    """The operands that ends of a copy, with their transforms, and the device that it goes to are computed from."""
    import jax

    plain = [(part.ref, part.transforms) if hasattr(part, "transforms") else part for part in parts]
    return _union(each for each in jax.tree_util.tree_leaves(plain) if isinstance(each, _Value))


def _union(values: Iterable[_Value]) -> _NAMES:
    return _NONE.union(*(each.names for each in values))


def _joined(runs: Iterable[list[_Value]]) -> list[_Value]:
    """Results that are those of one run or another."""
    return [
        _Value(_union(each), next((one.buffer for one in each if one.buffer is not None), None)) for each in zip(*runs)
    ]
