"""A kernel's events in order of execution, with loops unrolled for a few iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.identity import ById
from pallas_lint.kernels.model.known_names import REMAINDERS, integer
from pallas_lint.kernels.model.trace import LOOP_CARRY, LOOP_INDEX, Access, Op, conditions_in, is_full_index
from pallas_lint.kernels.model.values import Array, Const, Ref, Sym, SymbolOwner, Value, as_tuple
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pallas_lint.kernels.model.trace import Guard, KernelTrace

_ITERATIONS = (4, 2)  # four are as many as a ring of three slots needs to come back to the first
_MAX_EVENTS = 4096  # events, of all iterations


@frozen(eq=False)
class EventInstance:
    """One execution of an event. `iterations`: the number of the iteration in each loop around it, outermost first."""

    at: int  # its index in the trace
    event: Access | Op
    iterations: tuple[tuple[Guard, int], ...] = ()

    @property
    def conditions(self) -> tuple[Guard, ...]:
        return conditions_in(self.event.guards)


def unrolled_events(trace: KernelTrace) -> Iterator[EventInstance]:
    """All operations and accesses of a kernel, in order."""
    events = [(at, event) for at, event in enumerate(trace.events) if isinstance(event, Op | Access)]
    depth = max((sum(not loop.exact for loop in _loops(event)) for _, event in events), default=0)
    counts = (count for count in _ITERATIONS if len(events) * count**depth <= _MAX_EVENTS)
    return _unroll(events, (), next(counts, 1))


def _loops(event: Access | Op) -> tuple[Guard, ...]:
    return tuple(guard for guard in event.guards if guard.kind == "loop")


def _unroll(
    events: Sequence[tuple[int, Access | Op]], iterations: tuple[tuple[Guard, int], ...], count: int
) -> Iterator[EventInstance]:
    depth, at = len(iterations), 0
    while at < len(events):
        loops = _loops(events[at][1])
        if len(loops) == depth:
            yield EventInstance(*events[at], iterations)
            at += 1
            continue
        end = at
        while end < len(events) and _loops(events[end][1])[depth : depth + 1] == (loops[depth],):
            end += 1
        if loops[depth].exact:
            yield from _unroll(events[at:end], (*iterations, (loops[depth], 0)), count)
        else:
            recorded = recorded_iterations(events[at:end], depth)
            for iteration in range(max(count, len(recorded))):
                yield from _unroll(recorded[iteration % len(recorded)], (*iterations, (loops[depth], iteration)), count)
        at = end


def recorded_iterations(
    events: Sequence[tuple[int, Access | Op]], depth: int
) -> list[Sequence[tuple[int, Access | Op]]]:
    """The iterations of a loop that the trace has: two of one with a carry, which run the same code.

    Iterations of an inner loop are not its own: they belong to one run of that loop.
    """
    half, odd = divmod(len(events), 2)
    first, second = events[:half], events[half:]
    alike = not odd and all(a.site.key == b.site.key for (_, a), (_, b) in zip(first, second, strict=True))
    within = [{loop for _, event in part for loop in _loops(event)[depth + 1 :]} for part in (first, second)]
    return [first, second] if alike and not within[0] & within[1] else [events]


# -- slots ---------------------------------------------------------------------------------------------------------

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "sub": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "mul": lambda a, b: a * b,
    "rem": lambda a, b: a % b,  # of what loops count, which is not negative
    "remainder": lambda a, b: a % b,
    "mod": lambda a, b: a % b,
}


def part_of(ref: Ref, index: Value, instance: EventInstance) -> object:
    """The part of a buffer that `ref[index]` names in one event: equal ones overlap; "" for all of it, None: not known.

    A traced index equals itself only in the same iteration of the loops that compute it, unless it is a loop index.
    """
    if not ref.view:
        return "" if is_full_index(index) else _slot(index, instance)
    if ref.parent is None or ref.parent.view or ref.indexer is None:
        return None
    return "" if is_full_index(ref.indexer) else _slot(ref.indexer, instance)


def overlap(one: object, other: object) -> bool:
    """Whether two parts of one buffer certainly overlap."""
    return one is not None and other is not None and (one in ("", other) or other == "")


def _slot(index: Value, instance: EventInstance) -> object:
    parts = [_number(part, instance) for part in as_tuple(index)]
    return None if None in parts else tuple(parts)


def _number(index: Value, instance: EventInstance) -> object:
    if isinstance(index, Const):
        return None if index.value is ... else index
    if isinstance(index, Sym):  # one of the kernel may be what a Python loop counts
        named = (isinstance(owner, SymbolOwner) and not owner.in_kernel for owner in index.owners)
        return index if all(named) else None
    if not isinstance(index, Array):
        return None
    number = _evaluate_number(index, instance, 8)
    if number is not None:
        return Const(number)
    op = index.origin
    loops = None if op is None or op.name in (LOOP_INDEX, LOOP_CARRY) else _loops(op)
    return ById(index), tuple(iteration for iteration in instance.iterations if loops is None or iteration[0] in loops)


def _evaluate_number(value: Value, instance: EventInstance, depth: int) -> int | None:
    """The number that a traced scalar is, where it is computed from iterations of loops alone."""
    if isinstance(value, Const):
        return integer(value)
    op = value.origin if isinstance(value, Array) and value.shape == () else None
    if op is None or not depth:
        return None
    if op.name == LOOP_INDEX:
        lower = integer(op.args[0])
        iteration = next(
            (iteration for guard, iteration in reversed(instance.iterations) if is_loop_of(guard, op)), None
        )
        return None if lower is None or iteration is None else lower + iteration
    function = _ARITHMETIC.get(op.short)
    if function is None or len(op.args) != 2:
        return None
    left, right = (_evaluate_number(operand, instance, depth - 1) for operand in op.args)
    if left is None or right is None or (right == 0 and op.short in REMAINDERS):
        return None
    return function(left, right)


def is_loop_of(guard: Guard, index: Op) -> bool:
    """Whether the index is that of the loop: `@pl.loop(0, n)` is a call within the decorator."""
    return guard.site.span.contains(index.site.span)
