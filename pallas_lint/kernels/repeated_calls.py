"""Calls that were made before: what they did is told again, under the conditions of the new call, not done again.

Without this a chain of helpers, each of which calls the next twice, costs twice as much with every helper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, evolve, field

from pallas_lint.kernels.trace import Access, Capture, Guard
from pallas_lint.kernels.values import UNKNOWN, Array, Func, Seq, options

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from pallas_lint.kernels.arguments import Arguments
    from pallas_lint.kernels.interpreter import Interpreter
    from pallas_lint.kernels.trace import Event, KernelTrace
    from pallas_lint.kernels.values import Value

_FEW = 16  # events of a helper that are told again under the same conditions: fences and waits, not computations
_MOST = 128  # events of a call that are told again one by one; of more only what there is to tell
_LAUNCHES = 2  # calls outside kernels, by the same functions, that are made in earnest: so many launches are traced
_WAYS = 8  # the same by whatever functions
_Held = tuple[object, ...]


@define(eq=False)
class _Call:
    """What one call did: its result, and in a kernel the range of its events and when sight was lost among them."""

    result: Value
    held: _Held  # what the key names by identity: kept, so that no other has it
    changes: int  # how many things had been changed when it was over
    is_plain: bool = True  # it launched nothing and changed nothing
    first: int = 0
    last: int = 0
    guards: int = 0  # how many conditions it ran under
    unseen: tuple[int, ...] = ()
    times: int = 1


@define(eq=False)
class RepeatedCalls:
    """The calls of one analysis."""

    _known: dict[Hashable, _Call] = field(factory=dict)

    def call(self, i: Interpreter, func: Func, arguments: Arguments) -> Value:
        """Run a function, or say again what it did."""
        if "nonlocal" in func.piece.text:
            return i.run_function(func, arguments)
        same = (func, arguments.key, i.kernel, i.launch, i.uncertain > 0)
        held = _found_around(func, arguments)
        very_same = (*same, *map(id, held))
        if i.kernel is None:
            return self._outside(i, func, arguments, (*very_same, *_circumstances(i)), held)
        # What a nested function closes over may have changed in between.
        here = (*same, i.guards) if func.env.parent is None else None
        known = self._known.get(here)
        if known is not None:
            if known.last - known.first <= _FEW:
                i.kernel.events.extend(i.kernel.events[known.first : known.last])
            return known.result
        known = self._known.get(very_same)
        if known is not None and known.is_plain and known.changes == i.changes:
            known = _again(i, i.kernel, known)
        else:
            known = self._known[very_same] = _made(i, i.kernel, func, arguments, held)
        if here is not None:
            self._known[here] = known
        return known.result

    def _outside(self, i: Interpreter, func: Func, arguments: Arguments, same: Hashable, held: _Held) -> Value:
        """Outside kernels a call may launch: that counts once more for a second call, and for others on the way."""
        ways = (same, tuple(id(caller.node) for caller in i.stack))
        anyhow, alike = self._known.get(same), self._known.get(ways)
        if anyhow is not None and anyhow.changes == i.changes:
            if anyhow.is_plain or anyhow.times >= _WAYS:
                return anyhow.result
            if alike is not None and alike.changes == i.changes and alike.times >= _LAUNCHES:
                return alike.result
        before = len(i.launches), len(i.foreign_calls), i.changes, i.notes.count
        result = i.run_function(func, arguments)
        is_plain = before == (len(i.launches), len(i.foreign_calls), i.changes, i.notes.count)
        for key, known in ((same, anyhow), (ways, alike)):
            self._known[key] = _Call(result, held, i.changes, is_plain, times=1 if known is None else known.times + 1)
        return result


def _found_around(func: Func, arguments: Arguments) -> _Held:
    """All that tells a call from one with equal arguments: the makers of its arrays, and what closures find bound."""
    values = (*arguments.positional, *arguments.keywords.values())
    found: list[object] = [value.origin or value for value in values if isinstance(value, Array)]
    for each in (func, *_functions(values)):
        env = each.env
        while env.parent is not None:
            found.extend((*env.vars.values(), *env.facts.keys(), *env.facts.values()))
            env = env.parent
    return tuple(found)


def _functions(values: tuple[Value, ...]) -> Iterator[Func]:
    for value in values:
        for option in options(value):
            if isinstance(option, Func):
                yield option
            elif isinstance(option, Seq):
                yield from (item for item in option.items if isinstance(item, Func))


def _circumstances(i: Interpreter) -> tuple[Hashable, ...]:
    """What launches depend on besides their arguments: when they are met, and whether they are to fail."""
    return i.running, i.module.moment, i.calling, i.fails_on_purpose, i.is_caught


def _made(i: Interpreter, kernel: KernelTrace, func: Func, arguments: Arguments, held: _Held) -> _Call:
    first, unseen, launches, changes = len(kernel.events), len(kernel.unseen), len(i.launches), i.changes
    result = i.run_function(func, arguments)
    is_plain = len(i.launches) == launches and i.changes == changes
    lost = tuple(at - first for at in kernel.unseen[unseen:])
    return _Call(result, held, i.changes, is_plain, first, len(kernel.events), len(i.guards), lost)


def _again(i: Interpreter, kernel: KernelTrace, call: _Call) -> _Call:
    """Tell the events of a call under the conditions at hand."""
    first, unseen = len(kernel.events), call.unseen
    told = kernel.events[call.first : call.last]
    i.count(len(told))
    if len(told) <= _MOST:
        kernel.events.extend(_under(event, (*i.guards, *_guards(event)[call.guards :])) for event in told)
    else:
        # Each event once, under a condition that stands for all those under which it happens.
        somehow = (*i.guards, Guard("if", UNKNOWN, told[0].site))
        once = {_what(event): event for event in told}
        kernel.events.extend(_under(event, somehow, certain=False) for event in once.values())
        unseen = call.unseen[:1]
    for at in unseen:
        i.lose_sight(first + at)
    return evolve(call, first=first, last=len(kernel.events), guards=len(i.guards), unseen=unseen)


def _guards(event: Event) -> tuple[Guard, ...]:
    return () if isinstance(event, Capture) else event.guards


def _under(event: Event, guards: tuple[Guard, ...], *, certain: bool = True) -> Event:
    return event if isinstance(event, Capture) else evolve(event, guards=guards, certain=event.certain and certain)


def _what(event: Event) -> Hashable:
    """The same for events that differ in their conditions and operands only."""
    what = event.ref.buffer if isinstance(event, Access) else ()
    return event.__class__, event.site.key, getattr(event, "kind", ""), what
