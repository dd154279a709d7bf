"""Sizes that the code rejects unless a number divides them: every multiple that it lets through has to work."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

from pallas_lint.kernels.grid.block_counts import with_arrays
from pallas_lint.kernels.model.values import Sym

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.result import Effects

_MAX_MULTIPLES = 8  # of one size


def multiples(effects: Effects) -> Iterator[tuple[Sym, list[int]]]:
    """Each size that the code only requires to be a multiple, and the smallest that pass its guards.

    None that it compares otherwise: with a number, or with a size that is not an array's.
    """
    guards: dict[Sym, int] = {}
    for size, number in effects.multiples:
        if isinstance(size, Sym) and size.operation is None and not size.is_chosen and number > 1:
            guards[size] = lcm(guards.get(size, 1), number)
    for size in sorted(guards, key=lambda size: size.text):
        if not _is_limited(size, effects):
            yield size, [at * guards[size] for at in range(1, _MAX_MULTIPLES + 1)]


def _is_limited(size: Sym, effects: Effects) -> bool:
    """Whether a comparison may rule out some of the multiples."""
    linked: set[Sym | None] = set()
    new = with_arrays([size])
    while new:
        linked |= new
        groups = [group for group in effects.comparisons if not group.isdisjoint(new)]
        new = with_arrays(other for group in groups for other in group) - linked
        if None in new or any(len(group) == 1 for group in groups):
            return True  # with a number, or with something that is not known
        if any(other is not None and ".shape" not in other.text for other in new):
            return True
    return False
