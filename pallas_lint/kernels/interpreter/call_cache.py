"""Call cache: a call whose arguments have the same kinds replays the recorded events instead of interpreting the body.

Without it, a chain of helpers, each of which calls the next twice, would take exponential time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pallas_lint.identity import ById, ByIds
from pallas_lint.kernels.interpreter.call_replay import CallReplay, identity, parts_of
from pallas_lint.kernels.model.joins import chosen_anew
from pallas_lint.kernels.model.trace import Access, Capture, Guard
from pallas_lint.kernels.model.values import UNKNOWN, Array, Func, Ref, Seq, Unknown, options
from pallas_lint.records import define, evolve, field

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from pallas_lint.kernels.model.arguments import Arguments
    from pallas_lint.kernels.model.trace import Event, KernelTrace
    from pallas_lint.kernels.model.tracer import Tracer
    from pallas_lint.kernels.model.values import Value
    from pallas_lint.memo.query_cache import Query

_NONLOCAL = re.compile("nonlocal")
_MAX_VERBATIM_EVENTS = 16  # of a helper called again with equal arguments: fences and waits, not computations
_MAX_REPLAYED_EVENTS = 128  # of one call; of longer calls each distinct event is replayed once
_MAX_LONG_RUNS = 4  # interpreted calls of longer ones, with other arrays of the same kinds
# A function is no longer interpreted, in one kernel or from one root, after so many runs that took so many steps: the
# arguments of every call are of other kinds.
_MAX_COSTLY_RUNS = 64
_MAX_COSTLY_STEPS = 2000
_MAX_TRACED = 2  # interpreted calls outside kernels with the same callers: so many launches are traced
_MAX_TRACED_ANYHOW = 8  # ... with any callers
_MADE = (Array, Ref)
_Held = tuple[object, ...]
_Parts = tuple["Array | Ref", ...]


@define(eq=False)
class _RecordedCall:
    """A recorded call: its result, and in a kernel the range of its events and of those after unknown calls."""

    result: Value
    parts: _Parts  # the arrays and views among its arguments
    held: _Held  # objects that the key compares by identity: held, so that no address is reused
    mutations: int  # the interpreter's count when it returned
    is_plain: bool = True  # it launched nothing, mutated nothing, and in a kernel returned no function
    first: int = 0
    last: int = 0
    guards: int = 0  # the number of guards it ran under
    calls: int = 0  # the number of calls from the kernel to it, its own included
    untracked_at: tuple[int, ...] = ()
    times: int = 1
    read: frozenset[Query] | set[Query] = frozenset()  # outside kernels: its dependencies

    def is_of(self, parts: _Parts) -> bool:
        """Whether its arguments have these very parts."""
        return all(identity(old) is identity(new) for old, new in zip(self.parts, parts, strict=True))

    def replay_with(self, parts: _Parts) -> CallReplay:
        """A replay of the call with other arrays and views."""
        replay = CallReplay()
        for old, new in zip(self.parts, parts, strict=True):
            if old is not new:
                replay.substitute(old, new)
        return replay


@define
class _Cost:
    """The cost of the interpreted calls of one function, in one kernel or from one root."""

    runs: int = 0
    steps: int = 0


@define(eq=False)
class CallCache:
    """The recorded calls of one analysis."""

    _known: dict[Hashable, _RecordedCall] = field(factory=dict)
    _costs: dict[tuple[object, ...], _Cost] = field(factory=dict)

    def call(self, interp: Tracer, func: Func, arguments: Arguments) -> Value:
        """Run a function, or replay a recorded call."""
        if interp.constructing and func.name != "__init__":
            interp.constructing.clear()  # it may get the object, or find it in what it captures
        if func.piece.has(_NONLOCAL):
            result = self._run(interp, func, arguments)
            return UNKNOWN if result is None else result
        parts = tuple(parts_of((func, *arguments.positional, *arguments.keywords.values())))
        held = _captured_values(func, arguments)
        alike = (
            func,
            arguments.kinds,
            interp.kernel,
            interp.frame.launch,
            interp.frame.uncertain > 0,
            interp.frame.matmul_precision,
            _pattern(parts, held),
            ByIds(held),
        )
        if interp.kernel is None:
            return self._outside(interp, func, arguments, (*alike, *_launch_state(interp)), parts, held)
        # The captured variables of a nested function may have changed in between.
        here = (
            (
                func,
                arguments.key,
                interp.kernel,
                interp.frame.launch,
                interp.frame.uncertain > 0,
                interp.frame.matmul_precision,
                interp.frame.guards,
            )
            if func.env.parent is None
            else None
        )
        known = self._known.get(here)
        if known is not None and known.is_of(parts):
            if known.last - known.first <= _MAX_VERBATIM_EVENTS:
                interp.kernel.events.extend(interp.kernel.events[known.first : known.last])
            return known.result
        known = self._known.get(alike)
        times = 1
        if known is not None and known.is_plain and known.mutations == interp.mutations:
            is_long = known.last - known.first > _MAX_REPLAYED_EVENTS
            times = known.times + 1 if is_long and known.times < _MAX_LONG_RUNS and not known.is_of(parts) else 0
        if known is not None and not times:
            known = _replay(interp, interp.kernel, known, parts)
        else:
            outdated = interp.run.outdated
            known = self._record(interp, interp.kernel, func, arguments, parts, held, times)
            if known is None:
                return UNKNOWN
            if _has_changed(arguments, outdated, interp):
                return known.result
            self._known[alike] = known
        if here is not None:
            self._known[here] = known
        return known.result

    def _run(self, interp: Tracer, func: Func, arguments: Arguments) -> Value | None:
        """Interpret a function; None, as for an unknown function, where its runs took too long by now."""
        cost = self._costs.setdefault((func.node, func.env, interp.kernel or interp.maker), _Cost())
        if cost.runs >= _MAX_COSTLY_RUNS and cost.steps >= _MAX_COSTLY_STEPS:
            interp.frame.mark_untracked()
            return None
        before = interp.total_steps
        result = interp.run_function(func, arguments)
        cost.runs += 1
        cost.steps += interp.total_steps - before
        return result

    def _record(
        self,
        interp: Tracer,
        kernel: KernelTrace,
        func: Func,
        arguments: Arguments,
        parts: _Parts,
        held: _Held,
        times: int,
    ) -> _RecordedCall | None:
        """Interpret a call in a kernel; None where that takes too long."""
        first, untracked_at, launches, changes = (
            len(kernel.events),
            len(kernel.untracked_at),
            len(interp.outcome.launches),
            interp.mutations + interp.constructions,
        )
        result = self._run(interp, func, arguments)
        if result is None:
            return None
        unchanged = interp.mutations + interp.constructions == changes
        closes = next(_functions((result,)), None) is not None  # it may capture what this very call was given
        is_plain = len(interp.outcome.launches) == launches and unchanged and not closes
        lost = tuple(at - first for at in kernel.untracked_at[untracked_at:])
        last, guards, calls = len(kernel.events), len(interp.frame.guards), len(interp.frame.calls)
        return _RecordedCall(result, parts, held, interp.mutations, is_plain, first, last, guards, calls, lost, times)

    def _outside(
        self, interp: Tracer, func: Func, arguments: Arguments, same: Hashable, parts: _Parts, held: _Held
    ) -> Value:
        """A call outside kernels. Its launches are kept once more for a second call, and for other callers."""
        ways = (same, tuple([caller.node for caller in interp.frame.stack]))  # a generator takes twice as long
        anyhow, alike = self._known.get(same), self._known.get(ways)
        if anyhow is not None and anyhow.mutations == interp.mutations:
            known = anyhow if anyhow.is_plain or anyhow.times >= _MAX_TRACED_ANYHOW else alike
            if known is anyhow or (
                known is not None and known.mutations == interp.mutations and known.times >= _MAX_TRACED
            ):
                interp.memo.add_dependencies(known.read)
                replayed = known.replay_with(parts).value(known.result)
                given = (*arguments.positional, *arguments.keywords.values())
                return chosen_anew(replayed) if any(isinstance(each, Unknown) for each in given) else replayed
        before = _effects_of(interp)
        outdated = interp.run.outdated
        with interp.memo.track_dependencies() as read:
            result = self._run(interp, func, arguments)
        if result is None:
            return UNKNOWN
        if _has_changed(arguments, outdated, interp):
            return result
        is_plain = before == _effects_of(interp)
        for key, known in ((same, anyhow), (ways, alike)):
            times = 1 if known is None else known.times + 1
            self._known[key] = _RecordedCall(result, parts, held, interp.mutations, is_plain, times=times, read=read)
        return result


def _effects_of(interp: Tracer) -> tuple[int, ...]:
    """Counts of what a call outside kernels may do besides returning a value."""
    found = interp.outcome
    changes = interp.mutations + interp.constructions
    return len(found.launches), len(found.foreign_calls), changes, interp.effects.count


def _has_changed(arguments: Arguments, outdated: frozenset[ById], interp: Tracer) -> bool:
    """Whether a call has changed a list or dictionary that it got, as the next call with an equal one will."""
    if interp.run.outdated is outdated:
        return False
    given = (*arguments.positional, *arguments.keywords.values())
    return not (interp.run.outdated - outdated).isdisjoint(map(ById, given))


def _captured_values(func: Func, arguments: Arguments) -> _Held:
    """The captured variables of the closures in a call, which distinguish it from calls with equal arguments."""
    found: list[object] = []
    for closure in (func, *_functions((*arguments.positional, *arguments.keywords.values()))):
        env = closure.env
        while env.parent is not None:
            found.extend((*env.vars.values(), *env.facts.keys(), *env.facts.values()))
            env = env.parent
    return tuple(found)


def _pattern(parts: _Parts, held: _Held) -> Hashable:
    """Distinctions between equal parts that matter: which are the same, which are captured, which are traced."""
    if not parts:
        return ()
    bound = {ById(identity(value)) for value in held if isinstance(value, _MADE)}
    first: dict[ById, int] = {}
    pattern: list[Hashable] = []
    for index, part in enumerate(parts):
        key = ById(identity(part))
        pattern.append(("bound", key) if key in bound else first.setdefault(key, index))
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


def _launch_state(interp: Tracer) -> tuple[Hashable, ...]:
    """The state that launches depend on besides arguments: program point, sharding, derivatives, expected failures."""
    return (
        interp.maker,
        interp.frame.module.program_point,
        interp.run.as_called,
        interp.frame.sharding_context,
        interp.frame.differentiated,
        interp.frame.fails_on_purpose,
        interp.frame.is_caught,
    )


def _replay(interp: Tracer, kernel: KernelTrace, call: _RecordedCall, parts: _Parts) -> _RecordedCall:
    """Replay the events of a call with other parts, under the current guards."""
    first, untracked_at = len(kernel.events), call.untracked_at
    recorded = kernel.events[call.first : call.last]
    interp.count(len(recorded))
    replay = call.replay_with(parts)
    events = [replay.event(event, interp.frame, call.guards, call.calls) for event in recorded]
    if len(events) > _MAX_REPLAYED_EVENTS:
        # Each distinct event once, under a guard that stands for all its guards.
        guards = (*interp.frame.guards, Guard("if", UNKNOWN, events[0].site))
        distinct = {_event_key(event): event for event in events}
        events = [_with_guards(event, guards) for event in distinct.values()]
        untracked_at = call.untracked_at[:1]
    kernel.events.extend(events)
    for at in untracked_at:
        interp.frame.mark_untracked(first + at)
    result = replay.value(call.result)
    return evolve(
        call,
        result=result,
        parts=parts,
        first=first,
        last=len(kernel.events),
        guards=len(interp.frame.guards),
        calls=len(interp.frame.calls),
        untracked_at=untracked_at,
    )


def _with_guards(event: Event, guards: tuple[Guard, ...]) -> Event:
    return event if isinstance(event, Capture) else evolve(event, guards=guards, certain=False)


def _event_key(event: Event) -> Hashable:
    """The same for events that differ in their guards and operands only."""
    buffer = event.ref.buffer if isinstance(event, Access) else ()
    return event.__class__, event.site.key, getattr(event, "kind", ""), buffer
