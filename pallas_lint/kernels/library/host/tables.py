"""Look-ups in dictionaries of Python: tables of block sizes, by keys of which not everything may be known."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pallas_lint.kernels.library.equality import equal, without_names
from pallas_lint.kernels.model.values import (
    UNKNOWN,
    Const,
    Dictionary,
    DType,
    Instance,
    Seq,
    Sym,
    SymbolOwner,
    Value,
)
from pallas_lint.records import evolve

if TYPE_CHECKING:
    from pallas_lint.kernels.model.tracer import Tracer

_ENTRIES_PER_STEP = 4  # that are compared
_MAX_MERGED = 64  # entries of tables of which one is meant


def look_up(interp: Tracer, table: Dictionary, key: Value, name: str, default: Value | None = None) -> Value:
    """`table[key]`, or `table.get(key, default)`: the entry, or where the key is not known numbers with names.

    `name` is how the table is called. Each of these numbers has as its default that of the call, or the one that most
    entries have.
    """
    if table.open:
        return UNKNOWN
    if isinstance(key, Const):
        return next((value for known, value in table.items if known == key), UNKNOWN if default is None else default)
    interp.count(len(table.items) // _ENTRIES_PER_STEP)
    compared = [(_is_same(known, key), value) for known, value in table.items]
    there = [value for same, value in compared if same]
    found = there or [value for same, value in compared if same is None]
    if not found:
        return UNKNOWN if default is None else default
    if len(found) == 1 and (there or default is None):
        return found[0]
    return _any_of(found, f"{name}[...]", SymbolOwner(), None if there else default)


def _is_same(known: Value, key: Value) -> bool | None:
    """Whether two keys are equal; None where that is not known."""
    if isinstance(known, DType) and isinstance(key, DType):
        return None if None in (known.name, key.name) else known.name == key.name
    known, key = without_names(known), without_names(key)
    if not isinstance(known, Seq) or not isinstance(key, Seq):
        return equal(known, key)
    if known.open or key.open:
        return None
    if known.kind != key.kind or len(known.items) != len(key.items):
        return False
    parts = [_is_same(one, other) for one, other in zip(known.items, key.items, strict=True)]
    return False if False in parts else None if None in parts else True


def _any_of(values: list[Value], name: str, owner: SymbolOwner, default: Value | None) -> Value:
    """What is one of these: numbers under names, tuples of them, or the entries of all where these are tables."""
    given = values if default is None else [*values, default]
    if all(value == given[0] for value in given):
        return given[0]
    if all(isinstance(value, Const) and type(value.value) is int for value in given):
        return Sym(name, owner, Counter(given).most_common(1)[0][0] if default is None else default)
    if all(isinstance(value, Dictionary) and not value.open for value in given):
        pairs = tuple(pair for value in given if isinstance(value, Dictionary) for pair in value.items)
        return Dictionary(pairs) if len(pairs) <= _MAX_MERGED else UNKNOWN
    first = given[0]
    if isinstance(first, Instance) and first.order is not None:
        return _any_named_tuple(first, given, name, owner, default)
    tuples = [value for value in given if isinstance(value, Seq) and not value.open]
    if len(tuples) < len(given) or len({(len(value.items), value.kind) for value in tuples}) > 1:
        return UNKNOWN
    # The row that most have, or the default: what stands beside each other there belongs together.
    usual = default if default is not None else Counter(tuples).most_common(1)[0][0]
    assert isinstance(usual, Seq)
    items = []
    for at, one in enumerate(usual.items):
        column = [value.items[at] for value in tuples]
        items.append(_any_of(column, f"{name}[{at}]", owner, one))
    return Seq(tuple(items), usual.kind)


def _any_named_tuple(
    first: Instance, given: list[Value], name: str, owner: SymbolOwner, default: Value | None
) -> Value:
    """What is one of named tuples of one class."""
    if not all(isinstance(value, Instance) and value.cls is first.cls for value in given):
        return UNKNOWN
    tuples = [without_names(value) for value in given]
    usual = None if default is None else tuples.pop()
    merged = _any_of(tuples, name, owner, usual)
    if not isinstance(merged, Seq) or first.order is None:
        return UNKNOWN
    return evolve(first, attributes=dict(zip(first.order, merged.items, strict=True)))
