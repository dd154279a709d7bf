"""Inlay hints: the types of refs behind their parameters, steps and memory behind launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import range_of, to_lsp
from pallas_lint.server.views.calls import shown_launches, shown_traces
from pallas_lint.server.views.figures import (
    aval,
    known_of,
    memory_text,
    operand_of,
    ref_parameters,
    steps_text,
)
from pygls import uris

from pallas_lint.finding import Position, Span
from pallas_lint.kernels.model.known_names import is_spec
from pallas_lint.kernels.model.values import Sym
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.server.workspace.document_state import DocumentState
    from pygls.workspace import PositionCodec

    from pallas_lint.kernels.model.values import Ref, Shape
    from pallas_lint.known_calls.known_call import KnownCall
    from pallas_lint.probe.results import LaunchResult
    from pallas_lint.syntax import Piece, Site


def inlay_hints(state: DocumentState, codec: PositionCodec, lines: range) -> list[lsp.InlayHint]:
    """The type of each ref behind its parameter, as `x_ref: f32[8, 128]`; steps and memory behind a launch.

    Those on `lines`, from 1: few of a long file are visible.
    """
    if not state.has_analysis or not state.client.inlay_hints:
        return []
    hints: dict[Span, _Type] = {}
    for trace in shown_traces(state) if state.client.inlay_dtype else ():
        if not any(_reaches(body.piece, lines, state) for body in trace.launch.bodies):
            continue
        probed = known_of(state, trace.launch)
        for ref, span in ref_parameters(trace, state):
            if span.end.line in lines:
                seen = _type_of(ref, probed, trace.launch.known_call, state)
                hints[span] = seen if span not in hints else hints[span].joined(seen)
    found = [
        _hint(span, hint, state, codec)
        for span, hint in sorted(hints.items(), key=lambda each: each[0])
        if hint.label and _text_of(span, hint, state) not in state.source.line(span.end.line)
    ]
    return [*found, *_launch_hints(state, codec, lines)]


def _reaches(piece: Piece, lines: range, state: DocumentState) -> bool:
    """Whether a piece is in the document, and on some of the lines."""
    return piece.source.path == state.source.path and piece.first < lines.stop and piece.last >= lines.start


def _hint(span: Span, hint: _Type, state: DocumentState, codec: PositionCodec) -> lsp.InlayHint:
    """The type leads to what the ref is made of; a double click writes it into a comment."""
    label: str | list[lsp.InlayHintLabelPart] = f": {hint.label}"
    uri = uris.from_fs_path(hint.made_of.span.path) if hint.made_of is not None else None
    if hint.made_of is not None and uri is not None:
        where = lsp.Location(uri, range_of(hint.made_of.piece.source, hint.made_of.span, codec))
        label = [lsp.InlayHintLabelPart(": "), lsp.InlayHintLabelPart(hint.label, location=where)]
    comment = _comment(span, hint, state)
    return lsp.InlayHint(
        position=to_lsp(state.source, span.end, codec),
        label=label,
        kind=lsp.InlayHintKind.Type,
        text_edits=None if comment is None else [lsp.TextEdit(range_of(state.source, comment[0], codec), comment[1])],
        tooltip=hint.tooltip,
        padding_left=False,
        padding_right=False,
    )


def _text_of(span: Span, hint: _Type, state: DocumentState) -> str:
    """ "x_ref: f32[8, 128]": as in a comment."""
    name = state.source.line(span.end.line)[span.start.column - 1 : span.end.column - 1]
    return f"{name}: {hint.label}"


def _comment(span: Span, hint: _Type, state: DocumentState) -> tuple[Span, str] | None:
    """Where the line of a parameter ends, and what to write there; None where no comment can stand."""
    line = state.source.line(span.end.line).rstrip()
    before, mark, _ = line.partition("#")
    if line.endswith("\\") or (mark and not {'"', "'"}.isdisjoint(before)):
        return None
    end = Position(span.end.line, len(line) + 1)
    return Span(span.path, end, end), f"{', ' if mark else '  # '}{_text_of(span, hint, state)}"


@frozen
class _Type:
    """What is known of a ref; `told`: where from."""

    shape: Shape | None
    dtype: str | None
    space: str | None = None  # where that is worth showing
    tooltip: str | None = None
    made_of: Site | None = None  # the spec, scratch or barrier

    @property
    def label(self) -> str:
        # A row of blanks is of no use.
        unknown = sum(size is None for size in self.shape or ())
        shape = None if self.shape is None or 2 * unknown > len(self.shape) else self.shape
        return f"{aval(shape, self.dtype)} {self.space or ''}".strip()

    def joined(self, other: _Type) -> _Type:
        """What holds in both of two launches of a kernel."""
        mine, theirs = self.shape, other.shape
        if mine is None or theirs is None or len(mine) != len(theirs):
            shape: Shape | None = None
        else:
            shape = tuple(one if one == two else None for one, two in zip(mine, theirs, strict=True))
        return _Type(
            shape,
            self.dtype if self.dtype == other.dtype else None,
            self.space if self.space == other.space else None,
            self.tooltip if self.tooltip == other.tooltip else "in all of its launches",
            self.made_of if self.made_of == other.made_of else None,
        )


def _type_of(ref: Ref, probed: LaunchResult | None, call: KnownCall | None, state: DocumentState) -> _Type:
    """The type from the text or a known call; where that leaves something open, as probed."""
    operand, made_of = operand_of(probed, ref), ref.declared.site if ref.declared is not None else None
    known = ref.dtype is not None and ref.shape is not None and all(isinstance(each, int) for each in ref.shape)
    if operand is not None and not known:
        space = operand["memory_space"]
        unusual = space if space and space not in ("vmem", ref.space) else None
        return _Type(tuple(operand["block"] or operand["shape"]), operand["dtype"], unusual, "as probed", made_of)
    shape = ref.shape
    block = ref.declared.argument("block_shape", 0) if shape is None and is_spec(ref.declared) else None
    if isinstance(block, Sym):  # `BlockSpec(w.shape, …)`, of which not even the rank is known
        shape = (Sym(f"*{block.text}", block.owner),)
    tooltip = None if call is None else call.describe(state.source.path)
    return _Type(shape, ref.dtype, tooltip=tooltip, made_of=made_of)


def _launch_hints(state: DocumentState, codec: PositionCodec, lines: range) -> Iterator[lsp.InlayHint]:
    """At the end of a launch's first line: over how many points it runs, and what it takes of VMEM."""
    client = state.client
    seen: set[int] = set()
    for launch in shown_launches(state):
        if not _reaches(launch.called_at.piece, lines, state):
            continue
        line = launch.called_at.span.end.line
        if line not in lines or line in seen:
            continue
        seen.add(line)
        probed = known_of(state, launch)
        number = steps_text(launch, probed) if client.inlay_grid_steps else None
        memory = memory_text(launch, state, probed) if client.inlay_vmem else None
        labels = [
            *([number] if number is not None and launch.has_grid else []),
            *([memory] if memory else []),
        ]
        if labels:
            end = Position(line, len(state.source.line(line)) + 1)
            yield lsp.InlayHint(
                position=to_lsp(state.source, end, codec),
                label=", ".join(labels),
                tooltip="as probed"
                if probed is not None
                else "as far as the text shows"
                if launch.known_call is None
                else launch.known_call.describe(state.source.path),
                padding_left=True,
            )
