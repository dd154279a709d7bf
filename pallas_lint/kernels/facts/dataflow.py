"""Dataflow of loaded values within a kernel."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.model.trace import Access, Op
from pallas_lint.kernels.model.values import UNKNOWN, Array, CallResult, OneOf, Value, as_tuple
from pallas_lint.records import define

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.trace import KernelTrace

_MAX_DEPTH = 4  # of choices and calls in each other
# Functions that take the shape and dtype of an array and leave its values alone.
LIKE = frozenset(
    f"jax.{module}.{name}"
    for module in ("numpy", "lax")
    for name in ("zeros_like", "ones_like", "full_like", "empty_like", "shape", "ndim", "result_type")
)
# A value can be thrown away here, under a condition that is another value.
SELECTING = frozenset(
    (
        "jax.numpy.where", "jax.lax.select", "jax.lax.select_n", "jax.numpy.select", "jax.numpy.choose",
        "jax.numpy.piecewise", "jax.lax.cond", "jax.lax.switch", "jax.lax.platform_dependent",
    )
)  # fmt: skip


def operands(op: Op) -> Iterator[Value]:
    """The operands of an operation, those inside a tuple or list too."""
    for value in (*op.args, *(value for _, value in op.keywords)):
        yield from as_tuple(value)


def inputs(op: Op) -> Iterator[Value]:
    """The operands whose values, and not only their shapes, go into the result."""
    if op.name not in LIKE:
        yield from operands(op)
    elif op.short == "full_like":
        yield op.argument("fill_value", 1) or UNKNOWN


def is_among(value: Value, identities: set[ById]) -> bool:
    """Whether the value is one of these, or may be, where the text does not decide it, or is made of one by code that
    is not seen; an operation's result is that of the operation it comes from."""
    return not identities.isdisjoint(_identities(value))


def _identities(value: Value, depth: int = 0) -> tuple[ById, ...]:
    if isinstance(value, Array) and value.origin is not None:
        return ById(value), ById(value.origin.result)
    parts: tuple[Value, ...] = ()
    if depth < _MAX_DEPTH:
        parts = value.options if isinstance(value, OneOf) else value.args if isinstance(value, CallResult) else ()
    return ById(value), *(key for part in parts for key in _identities(part, depth + 1))


@define(eq=False, slots=False)
class Flow:
    """Dataflow in a finished trace, by the identities of values; computed once for all loads."""

    trace: KernelTrace

    @cached_property
    def steps(self) -> list[tuple[frozenset[ById], ById]]:
        """The operands and the result of each operation, in order."""
        return [
            (frozenset(key for value in inputs(op) for key in _identities(value)), ById(op.result))
            for op in self.trace.ops()
        ]

    @cached_property
    def taken(self) -> frozenset[ById]:
        """What goes into some operation."""
        return frozenset().union(*(taken for taken, _ in self.steps))

    @cached_property
    def mentioned(self) -> frozenset[ById]:
        """The values that operations take, also those that they take only for their shape."""
        shapes = (value for op in self.trace.ops() if op.name in LIKE for value in operands(op))
        return self.taken.union(*map(_identities, shapes))

    @cached_property
    def accesses(self) -> dict[ById, list[Access]]:
        """The accesses that load or store a value."""
        found: dict[ById, list[Access]] = {}
        for access in self.trace.accesses():
            for key in _identities(access.value):
                found.setdefault(key, []).append(access)
        return found

    def derived(self, load: Access) -> set[ById]:
        """The identities of what was loaded and of all that operations made of it."""
        tainted = {ById(load.value)}
        for taken, result in self.steps:
            if not taken.isdisjoint(tainted):
                tainted.add(result)
        return tainted

    def only_shape(self, load: Access) -> bool:
        """Whether what was loaded certainly serves for its shape and dtype alone: `jnp.zeros_like(ref[...])`."""
        loaded = ById(load.value)
        if loaded not in self.mentioned:
            return False  # where it goes is not seen
        return loaded not in self.taken and all(access is load for access in self.accesses.get(loaded, ()))


def reaches_result(load: Access, trace: KernelTrace) -> bool:
    """Whether what was loaded certainly reaches a result: not only its shape, and through no `where`."""
    if not isinstance(load.value, Array):
        return False
    tainted = {ById(load.value)}
    consumed = False
    for event in trace.events:
        if isinstance(event, Access):
            consumed |= event.kind in ("store", "accumulate") and is_among(event.value, tainted)
            continue
        if not isinstance(event, Op):
            continue
        found = list(operands(event))
        touched = any(is_among(value, tainted) for value in inputs(event))
        if event.name in SELECTING and (touched or any(is_obscure(value) for value in found)):
            return False
        if touched:
            consumed = True
            tainted.add(ById(event.result))
    return consumed


def goes_nowhere(load: Access, trace: KernelTrace) -> bool:
    """Whether certainly no operation takes what was loaded: then it is never loaded."""
    if trace.tracked_until is not None or not trace.complete:
        return False
    accesses = list(trace.accesses())
    loaded, plain = {ById(load.value)}, {ById(access.value) for access in accesses if access.kind == "load"}
    taken = [value for op in trace.ops() for value in operands(op)]
    for access in accesses:
        taken += [access.index] if access.kind == "load" else [access.index, access.value]
    return not any(is_among(value, loaded) or (ById(value) not in plain and is_obscure(value)) for value in taken)


def is_obscure(value: Value) -> bool:
    """Whether the value may hold what was loaded without showing it: a carry, the result of unknown code."""
    return value is UNKNOWN or (
        isinstance(value, Array) and value.origin is None and value.site is None and value.shape != ()
    )
