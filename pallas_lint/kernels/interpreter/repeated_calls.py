"""Calls that were made before: what they did is told again, for the arguments and conditions of the new call.

Without this a chain of helpers, each of which calls the next twice, costs twice as much with every helper.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.identity import ById, ByIds
from pallas_lint.kernels.interpreter.retelling import Retelling, identity, parts_of
from pallas_lint.kernels.model.trace import Access, Capture, Guard
from pallas_lint.kernels.model.values import UNKNOWN, Array, Func, Ref, Seq, options
from pallas_lint.records import define, evolve, field

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from pallas_lint.kernels.interpreter.interpreter import Interpreter
    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.trace import Event, KernelTrace
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.memo.query_cache import Query

_NONLOCAL = re.compile("nonlocal")
_FEW = 16  # events of a helper that are told again under the same conditions: fences and waits, not computations
_MOST = 128  # events of a call that are told again one by one; of more only what there is to tell
_RUNS = 4  # calls of more, with other arrays of the same kinds, that are made in earnest
# A function of which so many calls were made in earnest, in one kernel or from one root, and took so many steps is not
# followed there any more: every call had arguments of other kinds.
_OFTEN = 64
_LONG = 2000
_LAUNCHES = 2  # calls outside kernels, by the same functions, that are made in earnest: so many launches are traced
_WAYS = 8  # the same by whatever functions
_MADE = (Array, Ref)
_Held = tuple[object, ...]
_Parts = tuple["Array | Ref", ...]


@define(eq=False)
class _Call:
    """What one call did: its result, and in a kernel the range of its events and when sight was lost among them."""

    result: Value
    parts: _Parts  # the arrays and views that it was made with
    held: _Held  # what the key names by identity: kept, so that no other has it
    changes: int  # how many things had been changed when it was over
    is_plain: bool = True  # it launched nothing and changed nothing
    first: int = 0
    last: int = 0
    guards: int = 0  # how many conditions it ran under
    unseen: tuple[int, ...] = ()
    times: int = 1
    read: frozenset[Query] | set[Query] = frozenset()  # outside kernels: what it asked of the file

    def is_of(self, parts: _Parts) -> bool:
        """Whether it was made with these very parts."""
        return all(identity(old) is identity(new) for old, new in zip(self.parts, parts, strict=True))

    def told_with(self, parts: _Parts) -> Retelling:
        """The call with other arrays and views in the place of its own."""
        telling = Retelling()
        for old, new in zip(self.parts, parts, strict=True):
            if old is not new:
                telling.take(old, new)
        return telling


@define
class _Cost:
    """What the calls of one function that were made in earnest cost in one kernel, or from one root."""

    runs: int = 0
    steps: int = 0


@define(eq=False)
class RepeatedCalls:
    """The calls of one analysis."""

    _known: dict[Hashable, _Call] = field(factory=dict)
    _costs: dict[tuple[object, ...], _Cost] = field(factory=dict)

    def call(self, interp: Interpreter, func: Func, arguments: Arguments) -> Value:
        """Run a function, or say again what it did."""
        if func.piece.has(_NONLOCAL):
            result = self._run(interp, func, arguments)
            return UNKNOWN if result is None else result
        parts = tuple(parts_of((func, *arguments.positional, *arguments.keywords.values())))
        held = _found_around(func, arguments)
        alike = (
            func,
            arguments.kinds,
            interp.kernel,
            interp.frame.launch,
            interp.frame.uncertain > 0,
            _pattern(parts, held),
            ByIds(held),
        )
        if interp.kernel is None:
            return self._outside(interp, func, arguments, (*alike, *_circumstances(interp)), parts, held)
        # What a nested function closes over may have changed in between.
        here = (
            (func, arguments.key, interp.kernel, interp.frame.launch, interp.frame.uncertain > 0, interp.frame.guards)
            if func.env.parent is None
            else None
        )
        known = self._known.get(here)
        if known is not None and known.is_of(parts):
            if known.last - known.first <= _FEW:
                interp.kernel.events.extend(interp.kernel.events[known.first : known.last])
            return known.result
        known = self._known.get(alike)
        times = 1
        if known is not None and known.is_plain and known.changes == interp.changes:
            is_long = known.last - known.first > _MOST
            times = known.times + 1 if is_long and known.times < _RUNS and not known.is_of(parts) else 0
        if known is not None and not times:
            known = _again(interp, interp.kernel, known, parts)
        else:
            known = self._made(interp, interp.kernel, func, arguments, parts, held, times)
            if known is None:
                return UNKNOWN
            self._known[alike] = known
        if here is not None:
            self._known[here] = known
        return known.result

    def _run(self, interp: Interpreter, func: Func, arguments: Arguments) -> Value | None:
        """What a function returns; None, and lost sight, where its runs took too long by now."""
        cost = self._costs.setdefault((func.node, func.env, interp.kernel or interp.running), _Cost())
        if cost.runs >= _OFTEN and cost.steps >= _LONG:
            interp.lose_sight()
            return None
        before = interp.taken
        result = interp.run_function(func, arguments)
        cost.runs += 1
        cost.steps += interp.taken - before
        return result

    def _made(
        self,
        interp: Interpreter,
        kernel: KernelTrace,
        func: Func,
        arguments: Arguments,
        parts: _Parts,
        held: _Held,
        times: int,
    ) -> _Call | None:
        """Make a call in a kernel; None where that takes too long."""
        first, unseen, launches, changes = (
            len(kernel.events),
            len(kernel.unseen),
            len(interp.outcome.launches),
            interp.changes,
        )
        result = self._run(interp, func, arguments)
        if result is None:
            return None
        is_plain = len(interp.outcome.launches) == launches and interp.changes == changes
        lost = tuple(at - first for at in kernel.unseen[unseen:])
        last, guards = len(kernel.events), len(interp.frame.guards)
        return _Call(result, parts, held, interp.changes, is_plain, first, last, guards, lost, times)

    def _outside(
        self, interp: Interpreter, func: Func, arguments: Arguments, same: Hashable, parts: _Parts, held: _Held
    ) -> Value:
        """Outside kernels a call may launch: that counts once more for a second call, and for others on the way."""
        ways = (same, tuple(caller.node for caller in interp.frame.stack))
        anyhow, alike = self._known.get(same), self._known.get(ways)
        if anyhow is not None and anyhow.changes == interp.changes:
            known = anyhow if anyhow.is_plain or anyhow.times >= _WAYS else alike
            if known is anyhow or (known is not None and known.changes == interp.changes and known.times >= _LAUNCHES):
                interp.memo.add_dependencies(known.read)
                return known.told_with(parts).value(known.result)
        before = len(interp.outcome.launches), len(interp.outcome.foreign_calls), interp.changes, interp.effects.count
        with interp.memo.track_dependencies() as read:
            result = self._run(interp, func, arguments)
        if result is None:
            return UNKNOWN
        is_plain = before == (
            len(interp.outcome.launches),
            len(interp.outcome.foreign_calls),
            interp.changes,
            interp.effects.count,
        )
        for key, known in ((same, anyhow), (ways, alike)):
            times = 1 if known is None else known.times + 1
            self._known[key] = _Call(result, parts, held, interp.changes, is_plain, times=times, read=read)
        return result


def _found_around(func: Func, arguments: Arguments) -> _Held:
    """What tells a call from one with equal arguments: what closures find bound."""
    found: list[object] = []
    for each in (func, *_functions((*arguments.positional, *arguments.keywords.values()))):
        env = each.env
        while env.parent is not None:
            found.extend((*env.vars.values(), *env.facts.keys(), *env.facts.values()))
            env = env.parent
    return tuple(found)


def _pattern(parts: _Parts, held: _Held) -> Hashable:
    """Of equal parts what a call may ask for: which are the same, what a closure finds bound, what is traced."""
    if not parts:
        return ()
    bound = {ById(identity(value)) for value in held if isinstance(value, _MADE)}
    first: dict[ById, int] = {}
    pattern: list[Hashable] = []
    for at, part in enumerate(parts):
        which = ById(identity(part))
        pattern.append(("bound", which) if which in bound else first.setdefault(which, at))
        if isinstance(part, Array):
            pattern += [part.named, part.site is None, part.is_tracer]
    return tuple(pattern)


def _functions(values: tuple[Value, ...]) -> Iterator[Func]:
    for value in values:
        for option in options(value):
            if isinstance(option, Func):
                yield option
            elif isinstance(option, Seq):
                yield from (item for item in option.items if isinstance(item, Func))


def _circumstances(interp: Interpreter) -> tuple[Hashable, ...]:
    """What launches depend on besides their arguments: when and in what they are met, and whether they are to fail."""
    return (
        interp.running,
        interp.frame.module.moment,
        interp.calling,
        interp.frame.around,
        interp.fails_on_purpose,
        interp.is_caught,
    )


def _again(interp: Interpreter, kernel: KernelTrace, call: _Call, parts: _Parts) -> _Call:
    """Tell the events of a call with other parts, and under the conditions at hand."""
    first, unseen = len(kernel.events), call.unseen
    told = kernel.events[call.first : call.last]
    interp.count(len(told))
    telling = call.told_with(parts)
    events = [telling.event(event, interp.frame.guards, call.guards) for event in told]
    if len(events) > _MOST:
        # Each event once, under a condition that stands for all those under which it happens.
        somehow = (*interp.frame.guards, Guard("if", UNKNOWN, events[0].site))
        once = {_what(event): event for event in events}
        events = [_somehow(event, somehow) for event in once.values()]
        unseen = call.unseen[:1]
    kernel.events.extend(events)
    for at in unseen:
        interp.lose_sight(first + at)
    result = telling.value(call.result)
    return evolve(
        call,
        result=result,
        parts=parts,
        first=first,
        last=len(kernel.events),
        guards=len(interp.frame.guards),
        unseen=unseen,
    )


def _somehow(event: Event, guards: tuple[Guard, ...]) -> Event:
    return event if isinstance(event, Capture) else evolve(event, guards=guards, certain=False)


def _what(event: Event) -> Hashable:
    """The same for events that differ in their conditions and operands only."""
    what = event.ref.buffer if isinstance(event, Access) else ()
    return event.__class__, event.site.key, getattr(event, "kind", ""), what
