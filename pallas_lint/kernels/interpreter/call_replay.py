"""Replays a recorded call with other arguments of the same kinds: substitutes values in its events and result.

An array refers to its origin, the operation that computed it. A replay therefore copies the operations of the call, so
that all values derived from an argument are derived from the new one.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, TypeVar

from pallas_lint.identity import ById
from pallas_lint.kernels.model.trace import Access, Agreement, Capture, Concretization, Op
from pallas_lint.kernels.model.values import Array, CallResult, Dictionary, Func, OneOf, Ref, Seq, Slice
from pallas_lint.records import define, evolve, field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.kernels.model.frame import Frame
    from pallas_lint.kernels.model.trace import Event, Guard
    from pallas_lint.kernels.model.values import Value

_Name = TypeVar("_Name")
_CONTAINERS = frozenset({Seq, OneOf, Dictionary, Slice, Func, CallResult})


def parts_of(values: Iterable[Value]) -> Iterator[Array | Ref]:
    """The arrays, and the views of refs, in values: what may differ where the values are equal."""
    for value in values:
        if isinstance(value, Array) or (isinstance(value, Ref) and value.parent is not None):
            yield value
        elif value.__class__ in _CONTAINERS:
            yield from parts_of(_inside(value))


def identity(part: Array | Ref) -> object:
    """The same for arrays that the same operation made."""
    return (part.origin or part) if isinstance(part, Array) else part


def _inside(value: Value) -> tuple[Value, ...]:
    """The parts of an immutable value."""
    if isinstance(value, Seq):
        return value.items
    if isinstance(value, OneOf):
        return value.options
    if isinstance(value, Dictionary):
        return tuple(part for pair in value.items for part in pair)
    if isinstance(value, Slice):
        return tuple(part for part in (value.start, value.stop, value.step, value.size) if part is not None)
    if isinstance(value, Func):
        return (*value.bound, *(item for _, item in value.keywords))
    if isinstance(value, CallResult):
        callee = () if value.callee is None else (value.callee,)
        return (*value.args, *(item for _, item in value.keywords), *callee)
    return ()


@define(eq=False)
class CallReplay:
    """One replay of a call: a mapping from recorded values, operations and guards to their copies."""

    _values: dict[ById, Value] = field(factory=dict)
    _origins: dict[Op, Op | None] = field(factory=dict)
    _guards: dict[Guard, Guard] = field(factory=dict)

    def substitute(self, old: Array | Ref, new: Array | Ref) -> None:
        """Replace `old` of the recorded call with `new`."""
        self._values[ById(old)] = new
        if isinstance(old, Array) and isinstance(new, Array) and old.origin is not None:
            self._origins[old.origin] = new.origin

    def event(self, event: Event, frame: Frame, guards: int, calls: int) -> Event:
        """An event in another frame, whose guards and calls replace the first `guards` and `calls` of its own."""
        if isinstance(event, Capture):
            return event
        new_guards = (*frame.guards, *map(self._guard, event.guards[guards:]))
        if isinstance(event, Concretization):
            return evolve(event, value=self.value(event.value), guards=new_guards)
        if isinstance(event, Agreement):
            first, other = event.values
            return evolve(event, values=(self.value(first), self.value(other)), guards=new_guards)
        new_calls = (*frame.calls, *event.calls[calls:])
        if isinstance(event, Access):
            value = self._anew(event.value) if event.kind == "load" else self.value(event.value)
            ref, index = self._ref(event.ref), self.value(event.index)
            return evolve(event, ref=ref, index=index, value=value, guards=new_guards, calls=new_calls)
        args, keywords = self._all(event.args), self._named(event.keywords)
        result = self._anew(event.result)
        op = evolve(event, args=args, keywords=keywords, result=result, guards=new_guards, calls=new_calls)
        self._origins[event] = op
        return op

    def value(self, value: Value) -> Value:
        """The value in this replay."""
        known = self._values.get(ById(value))
        if known is not None:
            return known
        made = self._made(value)
        if made is not value:
            self._values[ById(value)] = made
        return made

    def _made(self, value: Value) -> Value:
        if isinstance(value, Array):
            return self._array(value)
        if isinstance(value, Ref):
            return self._ref(value)
        if isinstance(value, Seq):
            items = self._all(value.items)
            return value if items is value.items else evolve(value, items=items)
        if isinstance(value, Slice):
            bounds = _inside(value)
            made = self._all(bounds)
            return value if made is bounds else Slice(*made)
        if isinstance(value, OneOf):
            options = self._all(value.options)
            return value if options is value.options else evolve(value, options=options)
        if isinstance(value, Dictionary):
            pairs = self._named(value.items)
            return value if pairs is value.items else evolve(value, items=pairs)
        if isinstance(value, Func | CallResult):
            return self._with_arguments(value)
        return value

    def _with_arguments(self, value: Func | CallResult) -> Value:
        before = value.bound if isinstance(value, Func) else value.args
        args, keywords = self._all(before), self._named(value.keywords)
        if args is before and keywords is value.keywords:
            return value
        if isinstance(value, Func):
            return evolve(value, bound=args, keywords=keywords)
        return evolve(value, args=args, keywords=keywords)

    def _all(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values in this replay; the same tuple where none changed."""
        made = tuple(map(self.value, values))
        return values if all(map(is_, made, values)) else made

    def _named(self, pairs: tuple[tuple[_Name, Value], ...]) -> tuple[tuple[_Name, Value], ...]:
        if not pairs:
            return pairs
        values = tuple(value for _, value in pairs)
        made = self._all(values)
        return pairs if made is values else tuple(zip((name for name, _ in pairs), made, strict=True))

    def _array(self, array: Array) -> Array:
        origin = array.origin
        if origin is None:
            return array
        if origin not in self._origins and origin.launch is None:  # a loop's index, which no event made
            args = self._all(origin.args)
            self._origins[origin] = origin if args is origin.args else evolve(origin, args=args)
        made = self._origins.get(origin, origin)
        return array if made is origin else array.made_by(made)

    def _ref(self, ref: Ref) -> Ref:
        views = []
        while ById(ref) not in self._values and ref.parent is not None:
            views.append(ref)
            ref = ref.parent
        made = self._values.get(ById(ref), ref)
        assert isinstance(made, Ref)
        for view in reversed(views):
            indexer = None if view.indexer is None else self.value(view.indexer)
            made = (
                view if made is view.parent and indexer is view.indexer else evolve(view, parent=made, indexer=indexer)
            )
            self._values[ById(view)] = made
        return made

    def _anew(self, value: Value) -> Value:
        """A copy of the result of an event: two replays do not share results."""
        known = self._values.get(ById(value))
        if known is not None:
            return known
        if isinstance(value, Array):
            made: Value = evolve(value)
        elif isinstance(value, Seq):
            made = evolve(value, items=tuple(map(self._anew, value.items)))
        else:
            return self.value(value)
        self._values[ById(value)] = made
        return made

    def _guard(self, guard: Guard) -> Guard:
        known = self._guards.get(guard)
        if known is None:
            condition = self.value(guard.condition)
            known = guard if condition is guard.condition else evolve(guard, condition=condition)
            self._guards[guard] = known
        return known
