"""Stores of a single number, for which VMEM has no place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.library.indexing import is_scalar_index, result_shape
from pallas_lint.kernels.model.values import Array, Const, Seq, Sym, Value

if TYPE_CHECKING:
    from collections.abc import Collection

    from pallas_lint.kernels.model.trace import Access


def stores_number(access: Access, numbers: Collection[ById]) -> bool:
    """Whether a store takes one element of a ref; `numbers` are values that were loaded as single numbers."""
    target, rank = result_shape(access.ref.shape, access.index), access.ref.rank
    if target is not None:
        return target == ()
    taken = _scalars_in(access.index, numbers)
    scalar = _is_scalar(access.value) or ById(access.value) in numbers
    return bool(taken) and (taken == rank if rank is not None else scalar)


def _is_scalar(value: Value) -> bool:
    if isinstance(value, Array):
        return value.shape == ()
    return isinstance(value, Const) and isinstance(value.value, int | float)


def _scalars_in(index: Value, numbers: Collection[ById]) -> int:
    """The number of parts of an index, each of which certainly takes one element of its dimension; else 0."""
    parts = index.items if isinstance(index, Seq) and index.kind == "tuple" and not index.open else (index,)
    # A named Python value may be a slice or a tuple, too.
    surely = all(
        ById(part) in numbers or (not isinstance(part, Sym) and is_scalar_index(part) is True) for part in parts
    )
    return len(parts) if surely else 0
