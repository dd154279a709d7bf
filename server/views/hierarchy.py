"""Call hierarchy on the way to kernels: callers, launchers, kernels."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp, range_of
from pallas_lint.server.views.calls import shown_launches
from pallas_lint.server.views.figures import summary
from pallas_lint.server.views.navigation import inside, name_of
from pygls import uris

from pallas_lint.records import frozen
from pallas_lint.syntax import Site, nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Span
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.values import Func


@frozen(eq=False)
class _Call:
    """One function calls another, or launches it."""

    caller: Func
    callee: Func
    launch: Launch | None  # None: an ordinary call

    @property
    def places(self) -> list[Site]:
        """The places of the calls in the caller."""
        if self.launch is not None:
            return [self.launch.called_at]
        piece, name = self.caller.piece, self.callee.name.rpartition(".")[2]
        found = (node.func for node in walk(self.caller.node) if isinstance(node, nodes.Call))
        return [Site(piece, function) for function in found if piece.code(function).rpartition(".")[2] == name]


def prepare(state: DocumentState, place: lsp.Position, codec: PositionCodec) -> list[lsp.CallHierarchyItem]:
    """The kernel, or the function on the way to one, whose name stands there; of a launch its kernels."""
    if not state.has_analysis:
        return []
    position = from_lsp(state.source, place, codec)
    calls = list(_calls(state))
    at_launch = [each.callee for each in calls if each.launch and inside(each.launch.called_at.span, state, position)]
    named = [each for call in calls for each in (call.callee, call.caller) if inside(name_of(each), state, position)]
    found = {name_of(each): each for each in at_launch or named}
    return [_item(each, state, codec) for each in found.values()]


def incoming(
    state: DocumentState, item: lsp.CallHierarchyItem, codec: PositionCodec
) -> list[lsp.CallHierarchyIncomingCall]:
    """The functions that call or launch it."""
    mine = [each for each in _calls(state) if _is(each.callee, item, codec)]
    return [
        lsp.CallHierarchyIncomingCall(from_=_item(caller, state, codec), from_ranges=ranges)
        for caller, ranges in _grouped(((each.caller, each) for each in mine), codec)
    ]


def outgoing(
    state: DocumentState, item: lsp.CallHierarchyItem, codec: PositionCodec
) -> list[lsp.CallHierarchyOutgoingCall]:
    """The functions on the way to kernels that it calls, and the kernels that it launches."""
    mine = [each for each in _calls(state) if _is(each.caller, item, codec)]
    return [
        lsp.CallHierarchyOutgoingCall(to=_item(callee, state, codec), from_ranges=ranges)
        for callee, ranges in _grouped(((each.callee, each) for each in mine), codec)
    ]


def _calls(state: DocumentState) -> Iterator[_Call]:
    """Each step on the way to each launch of the document, of all calls that are known."""
    for launch in sorted(state.analysis.launches, key=lambda each: each.called_at.span):
        for caller, callee in pairwise(launch.path.callers):
            yield _Call(caller, callee, None)
        for body in launch.bodies if launch.path.callers else ():
            yield _Call(launch.path.callers[-1], body, launch)


def _grouped(calls: Iterable[tuple[Func, _Call]], codec: PositionCodec) -> list[tuple[Func, list[lsp.Range]]]:
    """The other functions, each once, with the places of their calls."""
    functions: dict[Span, Func] = {}
    places: dict[Span, dict[Span, lsp.Range]] = {}
    for function, call in calls:
        functions.setdefault(name_of(function), function)
        ranges = places.setdefault(name_of(function), {})
        ranges.update({site.span: range_of(site.piece.source, site.span, codec) for site in call.places})
    return [(function, list(places[name].values())) for name, function in functions.items()]


def _is(function: Func, item: lsp.CallHierarchyItem, codec: PositionCodec) -> bool:
    same = range_of(function.piece.source, name_of(function), codec) == item.selection_range
    return same and uris.from_fs_path(function.piece.source.path) == item.uri


def _item(function: Func, state: DocumentState, codec: PositionCodec) -> lsp.CallHierarchyItem:
    """The item of a function, with the document of the request: the function itself may be in another one."""
    source = function.piece.source
    launches = (each for each in shown_launches(state) if function in each.bodies)
    launch = min(launches, key=lambda each: each.called_at.span, default=None)
    return lsp.CallHierarchyItem(
        name=function.name,
        kind=lsp.SymbolKind.Function,
        detail=f"kernel: {summary(launch, state)}" if launch is not None else None,
        uri=uris.from_fs_path(source.path) or state.uri,
        range=range_of(source, function.piece.span(function.node), codec),
        selection_range=range_of(source, name_of(function), codec),
        data={"uri": state.uri},
    )
