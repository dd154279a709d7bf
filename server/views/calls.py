"""Known calls of launchers: which are there, and which one is shown where several tell of other shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from pallas_lint.kernels.analysis.known_call_runs import piece_of
from pallas_lint.known_calls.known_call import Kind
from pallas_lint.records import frozen
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.finding import Span
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.syntax import Piece


_NEAREST = get_args(Kind)


@frozen
class Launcher:
    """A function that is seen to be called: its name, where that stands, and the calls that tell something new."""

    name: str
    span: Span
    calls: tuple[KnownCall, ...]  # the nearest first
    shown: KnownCall


def launchers(state: DocumentState) -> Iterator[Launcher]:
    """The functions of a document of which calls are known, in no order."""
    assert state.file_analysis is not None and state.file_analysis.analysis is not None
    module = state.file_analysis.analysis.module
    for name, known in _calls(state).items():
        calls = tuple(each for each in known if each.kind != "annotation")  # which one sees there anyway
        piece = piece_of(module, name) if calls else None
        span = None if piece is None else _name_in(piece, name)
        if span is not None:
            yield Launcher(name, span, tuple(sorted(calls, key=_place)), _shown(name, calls, state))


def shown_launches(state: DocumentState) -> list[Launch]:
    """The launches of a document; where calls are known that lead to one, as the call that is shown has it."""
    assert state.file_analysis is not None and state.file_analysis.analysis is not None
    shown = {name: _shown(name, calls, state) for name, calls in _calls(state).items()}
    places: dict[nodes.Node, list[Launch]] = {}
    for launch in state.file_analysis.analysis.launches:
        places.setdefault(launch.site.key, []).append(launch)
    found: list[Launch] = []
    for launches in places.values():
        chosen = [
            each for each in launches if each.known_call is not None and each.known_call == shown[each.known_call.name]
        ]
        plain = [each for each in launches if each.known_call is None]
        bodies = {body for each in chosen for body in each.bodies}
        # A place, or a kernel there, to which that call does not lead is shown as it is for any.
        found += chosen + [each for each in plain if not chosen or bodies.isdisjoint(each.bodies)] or launches[:1]
    return found


def shown_traces(state: DocumentState) -> list[KernelTrace]:
    """Each kernel under these launches, once."""
    return list(dict.fromkeys(trace for launch in shown_launches(state) for trace in launch.traces))


def calls_of(state: DocumentState, name: str) -> list[KnownCall]:
    """The known calls of a function, the nearest first."""
    return sorted(_calls(state).get(name, ()), key=_place)


def _calls(state: DocumentState) -> dict[str, tuple[KnownCall, ...]]:
    """The calls of each function, in the order in which they are judged: findings name the first that they rest on."""
    assert state.file_analysis is not None and state.file_analysis.analysis is not None
    found: dict[str, dict[KnownCall, None]] = {}
    for launch in state.file_analysis.analysis.launches:
        if launch.known_call is not None:
            found.setdefault(launch.known_call.name, {})[launch.known_call] = None
    return {name: tuple(calls) for name, calls in found.items()}


def _place(call: KnownCall) -> tuple[int, str, int, str]:
    """As a reader looks for them: the nearest first, then as they stand in their files."""
    path, _, line = call.source.rpartition(":")
    number = int(line) if line.isdecimal() else 0
    return _NEAREST.index(call.kind), path, number, call.source


def _shown(name: str, calls: tuple[KnownCall, ...], state: DocumentState) -> KnownCall:
    """The call that the user picked, as long as it is there."""
    picked = state.picked.get(name)
    return picked if picked in calls and picked is not None else calls[0]


def _name_in(piece: Piece, name: str) -> Span | None:
    """Where a piece defines a function."""
    last = name.rpartition(".")[2]
    for node in piece.body:
        if isinstance(node, nodes.FunctionDef) and node.name.value == last:
            return piece.span(node.name)
    return None
