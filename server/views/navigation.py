"""Navigation between a kernel, its refs and its launches: definitions, references, call hierarchy, outline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp, range_of
from pallas_lint.server.views.calls import shown_launches, shown_traces
from pallas_lint.server.views.figures import launch_name, ref_parameters, summary
from pygls import uris

from pallas_lint.finding import Position, Span
from pallas_lint.syntax import Site, nodes
from pallas_lint.syntax.descent import walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.values import Func, Ref


def definitions(state: DocumentState, place: lsp.Position, codec: PositionCodec) -> list[lsp.Location]:
    """Where a ref of a kernel comes from: its spec, scratch or barrier, and the operand that is passed for it.

    Where there is neither, the launch.
    """
    if not state.has_analysis:
        return []
    position = from_lsp(state.source, place, codec)
    found = []
    for trace in shown_traces(state):
        known = ref_at(trace, state, position)
        if known is not None:
            _, ref = known
            made_of = [ref.declared.site] if ref.declared is not None else []
            operand = _operand(trace.launch, ref)
            found += [*made_of, *([operand] if operand is not None else [])] or [trace.launch.called_at]
    return _locations(found, codec)


def _operand(launch: Launch, ref: Ref) -> Site | None:
    """Where the launch's result is called: the argument that is passed for an input, if it is known."""
    prefetch = launch.prefetch_count
    if ref.index is None or prefetch is None or ref.role not in ("in", "prefetch"):
        return None
    at = ref.index + (prefetch if ref.role == "in" else 0)
    calls = [
        node
        for statement in launch.site.piece.body
        for node in walk(statement)
        if isinstance(node, nodes.Call) and node.func is launch.site.node
    ]
    if len(calls) != 1 or any(each.star or each.keyword is not None for each in calls[0].args[: at + 1]):
        return None
    return Site(launch.site.piece, calls[0].args[at].value) if at < len(calls[0].args) else None


def launches_of(state: DocumentState, place: lsp.Position, codec: PositionCodec) -> list[lsp.Location]:
    """The launches of the kernel whose name stands there, or of the one that is launched there."""
    if not state.has_analysis:
        return []
    position = from_lsp(state.source, place, codec)
    every = shown_launches(state)
    meant = {
        name_of(body)
        for launch in every
        for body in launch.bodies
        if inside(name_of(body), state, position) or inside(launch.called_at.span, state, position)
    }
    launches = [launch for launch in every if any(name_of(body) in meant for body in launch.bodies)]
    return _locations((launch.called_at for launch in launches), codec)


def outline(state: DocumentState, codec: PositionCodec) -> list[lsp.DocumentSymbol]:
    """The kernels and the launches of a document, in order."""
    if not state.has_analysis:
        return []
    source = state.source
    found: dict[Span, lsp.DocumentSymbol] = {}
    for launch in sorted(shown_launches(state), key=lambda each: each.called_at.span):
        for body in launch.bodies:
            span, name = body.piece.span(body.node), name_of(body)
            if span.path == source.path and name not in found:
                kind, detail = lsp.SymbolKind.Function, f"kernel: {summary(launch, state)}"
                found[name] = _symbol(
                    body.name, detail, kind, range_of(source, span, codec), range_of(source, name, codec)
                )
        span, name = launch.site.span, launch.called_at.span
        if span.path == source.path and name not in found:
            title, kind = f"launch of {launch_name(launch)}", lsp.SymbolKind.Event
            found[name] = _symbol(
                title, summary(launch, state), kind, range_of(source, span, codec), range_of(source, name, codec)
            )
    return [symbol for _, symbol in sorted(found.items(), key=lambda each: each[0])]


def _symbol(name: str, detail: str, kind: lsp.SymbolKind, whole: lsp.Range, own: lsp.Range) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(name=name, detail=detail, kind=kind, range=whole, selection_range=own)


def ref_at(trace: KernelTrace, state: DocumentState, position: Position) -> tuple[Span, Ref] | None:
    """The ref at a place: its parameter, or its name anywhere in the kernel."""
    for ref, span in ref_parameters(trace, state):
        if span.start <= position <= span.end:
            return span, ref
    word = _word_at(state, position)
    if word is None or not any(inside(body.piece.span(body.node), state, position) for body in trace.launch.bodies):
        return None
    text, span = word
    return next(((span, ref) for ref in trace.refs if ref.parameter == text), None)


def inside(span: Span, state: DocumentState, position: Position) -> bool:
    return span.path == state.source.path and span.start <= position <= span.end


def _word_at(state: DocumentState, position: Position) -> tuple[str, Span] | None:
    for match in re.finditer(r"[^\W\d]\w*", state.source.line(position.line)):
        if match.start() + 1 <= position.column <= match.end() + 1:
            start, end = Position(position.line, match.start() + 1), Position(position.line, match.end() + 1)
            return match[0], Span(state.source.path, start, end)
    return None


def name_of(body: Func) -> Span:
    """Where a kernel's name stands; of a lambda all of it."""
    return body.piece.span(body.node.name if isinstance(body.node, nodes.FunctionDef) else body.node)


def _locations(sites: Iterable[Site], codec: PositionCodec) -> list[lsp.Location]:
    """Each place once, in order."""
    found: dict[Span, lsp.Location] = {}
    for site in sorted(sites, key=lambda site: site.span):
        uri = uris.from_fs_path(site.span.path)
        if uri is not None:
            found.setdefault(site.span, lsp.Location(uri=uri, range=range_of(site.piece.source, site.span, codec)))
    return [*found.values()]
