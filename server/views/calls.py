"""Known calls of launchers, and the choice of the one that is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from pallas_lint.server.probing.probe_targets import NoFunction, choose
from pallas_lint.server.probing.stored_results import launches_at
from pallas_lint.server.views.figures import agrees

from pallas_lint.kernels.analysis.known_call_runs import piece_of
from pallas_lint.known_calls.known_call import Kind, KnownCall
from pallas_lint.probe import specs
from pallas_lint.records import frozen
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.finding import Span
    from pallas_lint.kernels.analysis.analysis import Analysis
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.syntax import Piece


_NEAREST = get_args(Kind)


@frozen
class Launcher:
    """A function that is seen to be called: its name, where that stands, and the calls that add something new."""

    name: str
    span: Span
    calls: tuple[KnownCall, ...]  # the nearest first
    shown: KnownCall


def launchers(state: DocumentState) -> Iterator[Launcher]:
    """The functions of a document of which calls are known, in no order."""
    module = state.analysis.module
    for name, known in _calls(state).items():
        calls = tuple(each for each in known if each.is_call)  # which one sees there anyway
        piece = piece_of(module, name) if calls else None
        span = None if piece is None else _name_in(piece, name)
        if span is not None:
            yield Launcher(name, span, tuple(sorted(calls, key=_place)), _shown(name, calls, state))


def shown_launches(state: DocumentState) -> list[Launch]:
    """The launches of a document; where calls are known that lead to one, as the call that is shown has it."""
    shown = {name: _shown(name, calls, state) for name, calls in _calls(state).items()}
    places: dict[nodes.Node, list[Launch]] = {}
    for launch in state.analysis.launches:
        places.setdefault(launch.site.key, []).append(launch)
    found: list[Launch] = []
    for launches in places.values():
        chosen = [
            each
            for each in launches
            if each.known_call is not None
            and each.known_call == shown[each.known_call.name]
            and not _is_another_probed(each, state)
        ]
        plain = [each for each in launches if each.known_call is None]
        bodies = {body for each in chosen for body in each.bodies}
        # A place, or a kernel there, to which that call does not lead is shown as it is for any.
        found += chosen + [each for each in plain if not chosen or bodies.isdisjoint(each.bodies)] or launches[:1]
    return found


def _is_another_probed(launch: Launch, state: DocumentState) -> bool:
    """Whether a launch was probed, through whichever function, as other calls make it: these are what is meant now."""
    assert launch.known_call is not None
    if launch.known_call.name in state.picked:
        return False
    place, kernel = launch.called_at.span, launch.traces[0].name if launch.traces else None
    seen = list(launches_at(state.probed, place.path, place.start.line, kernel))
    return bool(seen) and not any(agrees(launch, each) for each in seen)


def shown_traces(state: DocumentState) -> list[KernelTrace]:
    """Each kernel under these launches, once."""
    return list(dict.fromkeys(trace for launch in shown_launches(state) for trace in launch.traces))


def shown_call(state: DocumentState, name: str) -> KnownCall | None:
    """The call of a function that is shown; None where no call of it is known."""
    calls = tuple(each for each in _calls(state).get(name, ()) if each.is_call)
    return _shown(name, calls, state) if calls else None


def probed_call(state: DocumentState, name: str, arguments: str) -> KnownCall | None:
    """The call of a function, among its known calls, that a probe with these arguments makes."""
    return _probed_among(calls_of(state, name), arguments, state)


def _probed_among(calls: Sequence[KnownCall], arguments: str, state: DocumentState) -> KnownCall | None:
    probed = _call_of_probe(state.analysis, calls[0].function, arguments) if calls else None
    return next((each for each in calls if probed is not None and _is_same(probed, each)), None)


def calls_of(state: DocumentState, name: str) -> list[KnownCall]:
    """The known calls of a function, the nearest first."""
    return sorted(_calls(state).get(name, ()), key=_place)


def _calls(state: DocumentState) -> dict[str, tuple[KnownCall, ...]]:
    """The calls of each function, in the order in which they are judged: findings name the first that they rest on.

    Then, where there are any, those with which it was probed.
    """
    analysis = state.analysis
    found: dict[str, dict[KnownCall, None]] = {}
    for launch in analysis.launches:
        if launch.known_call is not None:
            found.setdefault(launch.known_call.name, {})[launch.known_call] = None
    for run in state.probed:
        calls = found.get(run.function or "", {})
        if calls:
            probed = _call_of_probe(analysis, next(iter(calls)).function, run.arguments)
            if probed is not None and not any(_is_same(probed, each) for each in calls):
                calls[probed] = None
    return {name: tuple(calls) for name, calls in found.items()}


def _call_of_probe(analysis: Analysis, function: str, arguments: str) -> KnownCall | None:
    """The call of a function with the arguments of a probe; None where they do not fit it any more."""
    path, _, name = function.rpartition("::")
    try:
        chosen = choose(analysis, name, None)
        spec = specs.parse_arguments(arguments, path, name)
    except (NoFunction, specs.SpecError):
        return None
    parameters = [each for each in chosen.parameters or () if not each.variadic]
    if len(spec.arguments) > len(parameters):
        return None
    given = {each.name: each.default for each in parameters if each.default is not None}
    given |= {each.name: specs.spelled(value) for each, value in zip(parameters, spec.arguments, strict=False)}
    given |= {name: specs.spelled(value) for name, value in spec.keywords}
    order = {each.name: at for at, each in enumerate(parameters)}
    known = sorted(given.items(), key=lambda each: order.get(each[0], len(order)))
    return KnownCall(function, tuple(known), "a probe", kind="probe")


def _is_same(probed: KnownCall, other: KnownCall) -> bool:
    """Whether a probe's call, with all of its arguments, is a known one: that may leave out what is not known."""
    given = dict(probed.arguments)
    return bool(other.arguments) and all(given.get(name) == value for name, value in other.arguments)


def _place(call: KnownCall) -> tuple[int, str, int, str]:
    """As a reader looks for them: the nearest first, then as they stand in their files."""
    path, _, line = call.source.rpartition(":")
    number = int(line) if line.isdecimal() else 0
    return _NEAREST.index(call.kind), path, number, call.source


def _shown(name: str, calls: tuple[KnownCall, ...], state: DocumentState) -> KnownCall:
    """The call that the user picked, as long as it is there; else the one that was probed last, else the first."""
    picked = state.picked.get(name)
    if picked is not None and picked in calls:
        return picked
    runs = (run for run in reversed(state.probed) if run.function == name)
    return next(filter(None, (_probed_among(calls, run.arguments, state) for run in runs)), calls[0])


def _name_in(piece: Piece, name: str) -> Span | None:
    """Where a piece defines a function."""
    last = name.rpartition(".")[2]
    for node in piece.body:
        if isinstance(node, nodes.FunctionDef) and node.name.value == last:
            return piece.span(node.name)
    return None
