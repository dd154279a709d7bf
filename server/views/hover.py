"""Hovers: facts of the analysis and of probes about the symbol at a position."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp, range_of
from pallas_lint.server.views.calls import shown_launches, shown_traces
from pallas_lint.server.views.costs import costs_of_lines
from pallas_lint.server.views.figures import (
    aval,
    backend_of,
    bracketed,
    known_of,
    launch_name,
    operand_of,
    space_of,
)
from pallas_lint.server.views.launch_text import launch_text
from pallas_lint.server.views.markdown import Markdown, code, content, joined, link, put, text
from pallas_lint.server.views.navigation import inside, ref_at
from pallas_lint.server.views.support_text import support_text

from pallas_lint.compat import support
from pallas_lint.finding import Position, Span
from pallas_lint.kernels.model.trace import Op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.values import Ref

_ROLES = {"prefetch": "scalar-prefetch operand", "in": "input", "out": "output", "scratch": "scratch"}


def hover(state: DocumentState, place: lsp.Position, codec: PositionCodec) -> lsp.Hover | None:
    """Facts about the code at a place: a call in a kernel, a ref, a launch, or any function of jax."""
    if not state.has_analysis or not state.client.hover:
        return None
    position = from_lsp(state.source, place, codec)
    found = _hovered(state, position)
    costs = joined("\n\n", _costs(state, position))
    if found is None and not costs:
        return None
    span, hovered = found if found is not None else (_line_of(state, position), text(""))
    parts = (hovered, costs, *_links(state, position))
    return lsp.Hover(contents=content(joined("\n\n", parts)), range=range_of(state.source, span, codec))


def _hovered(state: DocumentState, position: Position) -> tuple[Span, Markdown] | None:
    analysis = state.analysis
    found: tuple[Span, Markdown] | None = None
    for trace in shown_traces(state):
        found = _hovered_op(trace, state, position) or _hovered_ref(trace, state, position) or found
    if found is not None:
        return found
    for launch in shown_launches(state):
        span = launch.called_at.span
        if inside(span, state, position):
            return span, launch_text(launch, state)
    for use in analysis.module.uses.all:
        if use.name.startswith("jax.") and not use.imported and inside(use.span, state, position):
            support_of_use = support_text(use.name, state)
            if support_of_use:
                return use.span, put("**{}**\n\n{}", code(support.short(use.name)), support_of_use)
    return None


def _costs(state: DocumentState, position: Position) -> Iterator[Markdown]:
    """What the line costs, on each device of which that was predicted."""
    for each in costs_of_lines(state):
        if each.line == position.line:
            yield put("cost: {}", text(each.text))


def _line_of(state: DocumentState, position: Position) -> Span:
    """The line without what is before its text."""
    text = state.source.line(position.line)
    begin = len(text) - len(text.lstrip()) + 1
    end = Position(position.line, max(len(text.rstrip()) + 1, begin))
    return Span(state.source.path, Position(position.line, begin), end)


def _links(state: DocumentState, position: Position) -> Iterator[Markdown]:
    """The pages of the rules with findings here."""
    codes = {each.code: each for each in state.findings if inside(each.span, state, position)}
    if codes:
        found = (finding for _, finding in sorted(codes.items()))
        yield joined(" · ", (link(f"{finding.code} {finding.name}", finding.url) for finding in found))


def _hovered_op(trace: KernelTrace, state: DocumentState, position: Position) -> tuple[Span, Markdown] | None:
    """The innermost call of a jax function at the place: its name only, not its arguments."""
    best: tuple[Span, Markdown] | None = None
    for op in trace.events:
        if not isinstance(op, Op) or op.form != "call" or not op.name.startswith("jax."):
            continue
        function = getattr(op.site.node, "func", None)
        if function is None or op.site.piece.source.path != state.source.path:
            continue
        span = op.site.piece.span(function)
        if span.start <= position <= span.end:
            best = span, _op_text(op, trace.launch, state)
    return best


def _op_text(op: Op, launch: Launch, state: DocumentState) -> Markdown:
    described = put("**{}** in kernel {}", code(support.short(op.name)), code(launch_name(launch)))
    shape, dtype = getattr(op.result, "shape", None), getattr(op.result, "dtype", None)
    if given := aval(shape, dtype):
        described = put("{} gives {}", described, code(given))
    return joined("\n\n", (described, support_text(op.name, state, backend_of(launch, state))))


def _hovered_ref(trace: KernelTrace, state: DocumentState, position: Position) -> tuple[Span, Markdown] | None:
    known = ref_at(trace, state, position)
    return None if known is None else (known[0], _ref_text(known[1], trace.launch, state))


def _ref_text(ref: Ref, launch: Launch, state: DocumentState) -> Markdown:
    probed = known_of(state, launch)
    role = _ROLES.get(ref.role or "", "ref")
    number = f" {ref.index}" if ref.index is not None and ref.role in ("in", "out") else ""
    memory = space_of(ref, launch, state, None)
    space = f" in {memory.upper()}" if memory else ""
    block = code(aval(ref.shape, ref.dtype))
    block = put(", block {}", block) if block else block
    described = put("**{}**: {}{}{}", code(ref.parameter), text(f"{role}{number}"), block, _after(space))
    operand = operand_of(probed, ref)
    if operand is None:
        return described
    seen = code(operand["dtype"] + bracketed(operand["shape"]))
    cut = "" if operand["block"] in (None, operand["shape"]) else f" in blocks of {bracketed(operand['block'])}"
    where = f" in {operand['memory_space'].upper()}" if operand["memory_space"] else ""
    return put("{}\n\nas probed: {}{}{}", described, seen, _after(cut), _after(where))


def _after(words: str) -> Markdown:
    """Prose that stands behind something, with a space between; nothing for nothing."""
    return put(" {}", text(words)) if words else text("")
