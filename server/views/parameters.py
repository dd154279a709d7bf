"""Parameters of kernels in their text: all places of a ref's name, and another name for it."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp, range_of
from pallas_lint.server.views.calls import shown_traces
from pallas_lint.server.views.navigation import inside

from pallas_lint.kernels.model.trace import Access
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.syntax import Piece, nodes
    from pallas_lint.syntax.scopes import FunctionScope


class RenameError(Exception):
    """A name that cannot be given; the message is one sentence."""


@frozen(eq=False)
class _Parameter:
    """A ref of a kernel by its name in the text: where it is declared, and all its uses in the kernel."""

    name: str
    trace: KernelTrace
    piece: Piece
    scope: FunctionScope

    @property
    def places(self) -> list[nodes.Name]:
        return self.scope.parameters[self.name]


def highlights(state: DocumentState, place: lsp.Position, codec: PositionCodec) -> list[lsp.DocumentHighlight]:
    """Every place of the ref whose name stands there, and whether it is read or written."""
    found = _at(state, place, codec)
    if found is None:
        return []
    written = {
        access.site.piece.span(access.site.node).start
        for access in found.trace.accesses()
        if isinstance(access, Access) and access.kind != "load"
    }

    def kind(name: nodes.Name) -> lsp.DocumentHighlightKind:
        kinds = lsp.DocumentHighlightKind
        return kinds.Write if found.piece.span(name).start in written else kinds.Read

    places = sorted(found.places, key=lambda name: found.piece.span(name))
    return [lsp.DocumentHighlight(range_of(state.source, found.piece.span(name), codec), kind(name)) for name in places]


def renamed_range(state: DocumentState, place: lsp.Position, codec: PositionCodec) -> lsp.Range | None:
    """The name of a ref at a place, which can be another one; None where there is none."""
    found = _at(state, place, codec)
    if found is None or found.name in found.scope.bound:
        return None
    spans = map(found.piece.span, found.places)
    position = from_lsp(state.source, place, codec)
    return next((range_of(state.source, span, codec) for span in spans if inside(span, state, position)), None)


def renames(state: DocumentState, place: lsp.Position, new: str, codec: PositionCodec) -> list[lsp.TextEdit]:
    """The edits that give the ref at a place another name: launches pass refs by position. Raises RenameError."""
    found = _at(state, place, codec)
    if found is None or found.name in found.scope.bound:
        return []
    if not new.isidentifier() or keyword.iskeyword(new):
        raise RenameError(f"`{new}` is not a name")
    scope = found.scope
    if new != found.name and (new in scope.parameters or new in scope.bound or new in scope.free):
        raise RenameError(f"`{new}` is something else in this kernel")
    return [lsp.TextEdit(range_of(state.source, found.piece.span(name), codec), new) for name in found.places]


def _at(state: DocumentState, place: lsp.Position, codec: PositionCodec) -> _Parameter | None:
    if not state.has_analysis:
        return None
    position = from_lsp(state.source, place, codec)
    for trace in shown_traces(state):
        for body in trace.launch.bodies:
            scope = body.piece.scopes.of(body.node)
            for ref in trace.refs:
                names = scope.parameters.get(ref.parameter, ())
                if any(inside(body.piece.span(name), state, position) for name in names):
                    return _Parameter(ref.parameter, trace, body.piece, scope)
    return None
