"""Equality of values of Python: numbers, texts, classes, members of enumerations, and tuples of these."""

from __future__ import annotations

from pallas_lint.kernels.library.host import machine
from pallas_lint.kernels.model.known_names import TRACER
from pallas_lint.kernels.model.values import (
    ENUM_MEMBER,
    UNKNOWN,
    CallResult,
    Const,
    External,
    Instance,
    Seq,
    Sym,
    Value,
)


def equal(left: Value, right: Value) -> bool | None:
    """Whether values of Python are equal; None where that is not known."""
    if isinstance(left, Const) and isinstance(right, Const):
        return bool(left.value == right.value)
    if isinstance(left, Sym) and left == right:
        return True
    if Const("cpu") in (left, right) and (machine.names_backend(left) or machine.names_backend(right)):
        return False  # kernels are judged as an accelerator runs them
    if isinstance(left, External) and isinstance(right, External):
        return _same_class(left.name, right.name)
    if left is right and isinstance(left, Instance):
        return True
    left, right = without_names(left), without_names(right)
    if isinstance(left, Instance) and isinstance(right, Instance):
        return _same_member(left, right)
    if isinstance(left, Seq) and isinstance(right, Seq):
        if left.kind != right.kind or left.kind == "set" or left.open or right.open:
            return None
        if len(left.items) != len(right.items):
            return False
        parts = [equal(one, other) for one, other in zip(left.items, right.items, strict=True)]
        return False if False in parts else None if None in parts else True
    return None


def without_names(value: Value) -> Value:
    """The tuple that a named tuple is equal to; other values as they are."""
    return value.sequence or value if isinstance(value, Instance) else value


def _same_class(left: str, right: str) -> bool | None:
    """Whether two names are those of one class: one of Python's has no other name, nor has that of tracers."""
    if left == right:
        return True
    return (
        False if TRACER in (left, right) or (left.startswith("builtins.") and right.startswith("builtins.")) else None
    )


def _same_member(left: Instance, right: Instance) -> bool | None:
    """Whether two names of an enumeration are those of one value."""
    if left.made_by is not ENUM_MEMBER or right.made_by is not ENUM_MEMBER:
        return None
    values = [member.attributes.get("value", UNKNOWN) for member in (left, right)]
    if left.cls is not right.cls or all(isinstance(value, CallResult) for value in values):
        return False  # each `enum.auto()` is another one
    return equal(*values)
