"""Python's computations on known values: numbers, strings and iterators."""

from __future__ import annotations

import builtins
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from pallas_lint.kernels.model.known_names import integer
from pallas_lint.kernels.model.values import (
    UNKNOWN,
    CallResult,
    Const,
    Dictionary,
    Instance,
    Seq,
    Value,
)
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.tracer import Tracer

_MAX_LISTED = 32  # numbers of a `range` that are written out
_MAX_COMBINED = 256  # of what `itertools.product` combines
_MAX_INTEGER = 2**80
_MAX_LENGTH = 4096  # characters of a text
# Methods of texts that give the same whenever they are called, and take nothing but texts and numbers.
_OF_TEXT = frozenset(
    "capitalize casefold count endswith find index isalnum isalpha isdigit lower lstrip partition removeprefix"
    " removesuffix replace rpartition rsplit rstrip split splitlines startswith strip title upper".split()
)

_OF_NUMBERS = frozenset(("bit_length", "bit_count", "is_integer", "conjugate"))


def items_of(value: Value) -> tuple[Value, ...] | None:
    """What going over a value gives, one after the other; None where that is not known."""
    if isinstance(value, Instance):
        return None if value.sequence is None else value.sequence.items
    if isinstance(value, Seq):
        return None if value.open else value.items
    if isinstance(value, Dictionary):
        return None if value.open else tuple(key for key, _ in value.items)
    if isinstance(value, Const) and isinstance(value.value, str) and len(value.value) <= _MAX_LISTED:
        return tuple(map(Const, value.value))
    if isinstance(value, CallResult) and value.function == "builtins.range":
        bounds = [bound for bound in map(integer, value.args) if bound is not None]
        if 0 < len(bounds) == len(value.args) and bounds[2:] != [0]:
            numbers = range(*bounds)
            return None if numbers[_MAX_LISTED:] else tuple(map(Const, numbers))
    if isinstance(value, CallResult) and value.function == "itertools.product" and not value.keywords:
        known = [items for items in map(items_of, value.args) if items is not None]
        if not value.open and len(known) == len(value.args) and prod(map(len, known)) <= _MAX_COMBINED:
            return tuple(map(Seq, product(*known)))
    return None


def computed(name: str, operands: list[Value]) -> Value:
    """`abs`, `round`, `divmod` or `pow` of numbers; unknown where one is not known."""
    given = [value.value for value in operands if isinstance(value, Const) and isinstance(value.value, int | float)]
    if len(given) != len(operands) or (name == "pow" and not all(abs(number) <= 64 for number in given[1:])):
        return UNKNOWN
    try:
        return _value(getattr(builtins, name)(*given))
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN


def _value(result: Any) -> Value:
    """The value of what Python has computed."""
    if isinstance(result, tuple | list):
        return Seq(tuple(map(_value, result)), "tuple" if isinstance(result, tuple) else "list")
    too_large = isinstance(result, int) and abs(result) > _MAX_INTEGER
    return UNKNOWN if too_large or (isinstance(result, str) and len(result) > _MAX_LENGTH) else Const(result)


def text_method(owner: str, name: str, arguments: Arguments) -> Value:
    """`name.split("_")`, `"x".join(names)`: unknown where an argument is."""
    given = arguments.positional
    if name == "join" and len(given) == 1 and (items := items_of(given[0])) is not None:
        parts = [item.value for item in items if isinstance(item, Const) and isinstance(item.value, str)]
        return _value(owner.join(parts)) if len(parts) == len(items) else UNKNOWN
    plain = [value.value for value in given if isinstance(value, Const)]
    if name not in _OF_TEXT or len(plain) != len(given) or arguments.keywords or arguments.open:
        return UNKNOWN
    try:
        return _value(getattr(owner, name)(*plain))
    except (TypeError, ValueError):
        return UNKNOWN


def number_method(owner: int | float, name: str, arguments: Arguments) -> Value:
    """`n.bit_length()`, `x.is_integer()`."""
    if name not in _OF_NUMBERS or not hasattr(owner, name) or arguments.positional or arguments.keywords:
        return UNKNOWN
    return _value(getattr(owner, name)())


def sort(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`sorted(...)` of numbers or texts."""
    items = items_of(arguments.positional[0]) if arguments.positional else None
    reverse = arguments.keywords.get("reverse", Const(False))
    known = [item.value for item in items or () if isinstance(item, Const)]
    sortable = items is not None and len(known) == len(items) and "key" not in arguments.keywords
    if sortable and isinstance(reverse, Const):
        try:
            return Seq(tuple(map(Const, sorted(known, reverse=bool(reverse.value)))), "list")
        except TypeError:
            pass
    return Seq((), "list", open=True)


def first(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`next(...)` of a comprehension; how much of another iterator has been taken is not followed."""
    given = arguments.positional
    if not isinstance(node, nodes.Call) or not node.args or not isinstance(node.args[0].value, nodes.GeneratorExp):
        return UNKNOWN
    if not isinstance(given[0], Seq) or given[0].open:
        return UNKNOWN
    return given[0].items[0] if given[0].items else given[1] if len(given) == 2 else UNKNOWN


def text(interp: Tracer, name: str, arguments: Arguments, node: nodes.Node) -> Value:
    """`str(x)` of a number, or a text."""
    value = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    return _value(str(value.value)) if isinstance(value, Const) else UNKNOWN
