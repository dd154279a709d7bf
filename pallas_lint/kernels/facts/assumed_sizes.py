"""Numbers to try for sizes that have only names: `x.shape[0]` is 3, 4, 5 and 6 blocks of what divides it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pallas_lint.identity import iter_unique
from pallas_lint.kernels.grid.blocks import grid_of
from pallas_lint.kernels.grid.grid_points import terms_in
from pallas_lint.kernels.model.known_names import REMAINDERS, integer
from pallas_lint.kernels.model.symbols import is_of_shape
from pallas_lint.kernels.model.trace import Access, Op
from pallas_lint.kernels.model.values import Array, CallResult, Const, Ref, Seq, Slice, Sym, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.result import Effects
    from pallas_lint.kernels.model.trace import KernelTrace

_BLOCKS = (3, 4, 5, 6)  # enough for a ring of three slots to come round, even and odd
_BLOCK = 8  # elements of a block of which the text gives no default
_SLOTS = 2  # and the slots of a buffer
_DIVISIONS = ("//", "%", "cdiv")


def assumed_sizes(trace: KernelTrace, effects: Effects) -> Iterator[dict[Sym, int]]:
    """Values of all named sizes that a kernel's events depend on; none where the code compares one of them."""
    values = list(_values_of(trace))
    names = {value for value in values if isinstance(value, Sym) and value.operation is None and not is_of_shape(value)}
    if not names or not names.isdisjoint(effects.compared) or any(name.is_chosen for name in names):
        return
    fixed = _fixed(values)
    units = {name: _unit(name, values, fixed) for name in names}
    for count in _BLOCKS:
        yield {name: fixed.get(name, count * units[name]) for name in names}


def _fixed(values: list[Value]) -> dict[Sym, int]:
    """Sizes of blocks and numbers of slots: what divides something, and what has a default."""
    found: dict[Sym, int] = {}
    for value in values:
        if isinstance(value, Sym) and (default := integer(value.default)):
            found[value] = default
        op = value.origin if isinstance(value, Array) else None
        if op is not None and op.short in REMAINDERS and isinstance(op.args[-1], Sym):
            found.setdefault(op.args[-1], _SLOTS)
        elif isinstance(value, Sym) and value.operation is not None and value.operation[0] in _DIVISIONS:
            divisor = value.operation[2]
            if isinstance(divisor, Sym) and divisor.operation is None:
                found.setdefault(divisor, integer(divisor.default) or _BLOCK)
    return found


def _unit(name: Sym, values: list[Value], fixed: dict[Sym, int]) -> int:
    """What a size is a multiple of: everything that the code divides it by."""
    unit = 1
    for value in values:
        if isinstance(value, Sym) and value.operation is not None and value.operation[0] in _DIVISIONS:
            _, whole, divisor = value.operation
            if name in terms_in(whole).symbols:
                by = fixed.get(divisor) if isinstance(divisor, Sym) else integer(divisor)
                unit = math.lcm(unit, by or 1)
    return unit


def _values_of(trace: KernelTrace) -> Iterator[Value]:
    """All values that decide what the events of a kernel do, with what they are computed of."""
    grid = grid_of(trace.launch)
    stack: list[Value] = [size for size in (grid.sizes if grid is not None else ()) if isinstance(size, Sym)]
    for event in trace.events:
        if isinstance(event, Access | Op):
            stack += [guard.condition for guard in event.guards]
            stack += (
                [event.ref, event.index] if isinstance(event, Access) else [*event.args, *dict(event.keywords).values()]
            )
    for value in iter_unique(stack):
        stack += _parts(value)
        yield value


def _parts(value: Value) -> list[Value]:
    if isinstance(value, Ref):
        sizes = [size for size in value.shape or () if isinstance(size, Sym)]
        return [*sizes, *(part for part in (value.indexer, value.parent) if part is not None)]
    if isinstance(value, Seq):
        return list(value.items)
    if isinstance(value, CallResult):
        return [*value.args, *dict(value.keywords).values()]
    if isinstance(value, Slice):
        return [part for part in (value.start, value.stop, value.size) if part is not None]
    if isinstance(value, Array) and value.origin is not None:
        return [*value.origin.args, *dict(value.origin.keywords).values()]
    if isinstance(value, Sym) and value.operation is not None:
        return [part for part in value.operation[1:] if not isinstance(part, Const)]
    return []
