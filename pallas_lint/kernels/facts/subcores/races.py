"""Races between subcores of a SparseCore: copies to and from shared memory without a barrier between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.kernels.facts.memory_spaces import is_copy
from pallas_lint.kernels.facts.named_axes import axis_points
from pallas_lint.kernels.library.indexing import is_scalar_index
from pallas_lint.kernels.model.known_names import PALLAS, integer
from pallas_lint.kernels.model.trace import Access, Op, conditions_in, is_full_index
from pallas_lint.kernels.model.values import Const, Slice, as_tuple
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.values import Ref, Value

BARRIER = f"{PALLAS}.tpu_sc.subcore_barrier"
_SIGNALS = ("semaphore_signal", "semaphore_wait")


@frozen
class Meeting:
    """Two copies, of two subcores of a core, that touch the same rows in no order."""

    first: Access
    second: Access
    subcores: tuple[int, int]
    row: int


@frozen(eq=False)
class _Rows:
    """What one copy takes of the rows of a shared buffer."""

    access: Access
    at: int  # number of the barriers before it
    start: Value
    count: int


def meetings(trace: KernelTrace, axes: dict[str, int]) -> Iterator[Meeting]:
    """Copies that meet in VMEM_SHARED because no `subcore_barrier` is between; the first for each pair of places.

    Nothing where subcores wait for each other by semaphores, in loops, or at rows that are not computed of their
    numbers.
    """
    if not trace.complete or trace.tracked_until is not None or len(axes) != 2:
        return
    if any(op.short in _SIGNALS for op in trace.ops()):
        return
    taken = list(_taken(trace))
    for number, first in enumerate(taken):
        for second in taken[number + 1 :]:
            same = first.access.ref.buffer == second.access.ref.buffer and first.at == second.at
            if same and {first.access.kind, second.access.kind} == {"load", "store"}:
                found = _meeting(first, second, trace, axes)
                if found is not None:
                    yield found


def guarded_barriers(trace: KernelTrace, axes: dict[str, int]) -> Iterator[Op]:
    """Barriers that only some subcores of a core come to: these wait for the others for ever."""
    for op in trace.ops(BARRIER):
        conditions = [guard.condition for guard in conditions_in(op.guards)]
        if not conditions or not op.certain:
            continue
        points = axis_points(conditions, trace.launch, axes)
        comes = [point.runs(op.guards) for point in points]
        core = next(iter(axes))
        of_core = [each for each, point in zip(comes, points, strict=True) if point.coordinates[core] == 0]
        if None not in of_core and len(set(of_core)) == 2:
            yield op


def _taken(trace: KernelTrace) -> Iterator[_Rows]:
    barriers = 0
    for event in trace.events:
        if isinstance(event, Op) and event.name == BARRIER:
            barriers += 1
        if not isinstance(event, Access) or event.kind not in ("load", "store") or not is_copy(event):
            continue
        rows = _rows(event.ref) if event.ref.root.space == "vmem_shared" else None
        if rows is not None and event.certain and not any(guard.kind == "loop" for guard in event.guards):
            yield _Rows(event, barriers, *rows)


def _rows(ref: Ref) -> tuple[Value, int] | None:
    """First row and number of rows of a whole buffer, or of rows of it that are taken in full."""
    root = ref.root
    if not root.shape or not isinstance(root.shape[0], int):
        return None
    if ref is root:
        return Const(0), root.shape[0]
    if ref.parent is not root or ref.indexer is None:
        return None
    parts = as_tuple(ref.indexer)
    first, *rest = parts
    if not all(is_full_index(part) for part in rest):
        return None
    if isinstance(first, Slice):
        start, stop = integer(first.start), integer(first.stop)
        between = stop - start if start is not None and stop is not None and 0 <= start < stop else None
        size = between if first.size is None else integer(first.size)
        return None if size is None else (first.start, size)
    return (first, 1) if is_scalar_index(first) else None


def _meeting(first: _Rows, second: _Rows, trace: KernelTrace, axes: dict[str, int]) -> Meeting | None:
    values = [
        each
        for rows in (first, second)
        for each in (rows.start, *(guard.condition for guard in rows.access.guards if guard.kind != "checkify"))
    ]
    core, subcore = axes
    points = [point for point in axis_points(values, trace.launch, axes) if point.coordinates[core] == 0]
    for one in points:
        start = one.value(first.start)
        if not isinstance(start, int) or one.runs(first.access.guards) is not True:
            continue
        for other in points:
            at = other.value(second.start)
            if other is one or not isinstance(at, int) or other.runs(second.access.guards) is not True:
                continue
            row = max(start, at)
            if row < min(start + first.count, at + second.count):
                return Meeting(first.access, second.access, (one.coordinates[subcore], other.coordinates[subcore]), row)
    return None
