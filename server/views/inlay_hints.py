"""Inlay hints: the types of refs behind their parameters, steps and memory behind launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import to_lsp
from pallas_lint.server.views.calls import shown_launches, shown_traces
from pallas_lint.server.views.figures import (
    aval,
    bracketed,
    known_of,
    memory_text,
    operand_of,
    ref_parameters,
    steps_text,
)

from pallas_lint.finding import Position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.server.workspace.judged import Judged
    from pygls.workspace import PositionCodec

    from pallas_lint.kernels.model.values import Ref
    from pallas_lint.probe.results import LaunchResult
    from pallas_lint.witnesses.witness import Witness


def inlay_hints(judged: Judged, asked: lsp.Range, codec: PositionCodec) -> list[lsp.InlayHint]:
    """The type of each ref behind its parameter, as `x_ref: f32[8, 128]`; steps and memory behind a launch."""
    if judged.judgement is None or judged.judgement.analysis is None or not judged.client.inlay_hints:
        return []
    first, last = asked.start.line + 1, asked.end.line + 1
    hints: dict[Position, tuple[str, str | None] | None] = {}
    for trace in shown_traces(judged) if judged.client.inlay_dtype else ():
        probed = known_of(judged, trace.launch)
        for ref, span in ref_parameters(trace, judged):
            if first <= span.start.line <= last:
                label = _ref_hint(ref, probed, trace.launch.witness, judged)
                # A kernel of several launches has the hint only where they agree.
                if label is not None:
                    hints[span.end] = label if hints.get(span.end, label) == label else None
    found = [
        lsp.InlayHint(
            position=to_lsp(judged.source, position, codec),
            label=f": {hint[0]}",
            kind=lsp.InlayHintKind.Type,
            tooltip=hint[1],
            padding_left=False,
            padding_right=False,
        )
        for position, hint in sorted(hints.items())
        if hint is not None
    ]
    return [*found, *_launch_hints(judged, (first, last), codec)]


def _ref_hint(
    ref: Ref, probed: LaunchResult | None, call: Witness | None, judged: Judged
) -> tuple[str, str | None] | None:
    """The type from the text or a known call; where that leaves something open, as probed; with where it comes from."""
    label = aval(ref.shape, ref.dtype)
    operand = operand_of(probed, ref)
    known = ref.dtype is not None and ref.shape is not None and all(isinstance(each, int) for each in ref.shape)
    if operand is not None and not known:
        seen = f"{operand['dtype']}{bracketed(operand['block'] or operand['shape'])}"
        space = operand["memory_space"]
        return (f"{seen} {space}" if space and space not in ("vmem", ref.space) else seen), "as probed"
    told = None if call is None else call.told(judged.source.path)
    return (label, told) if label else None


def _launch_hints(judged: Judged, lines: tuple[int, int], codec: PositionCodec) -> Iterator[lsp.InlayHint]:
    """At the end of a launch's first line: over how many points it runs, and what it takes of VMEM."""
    assert judged.judgement is not None and judged.judgement.analysis is not None
    client = judged.client
    seen: set[int] = set()
    for launch in shown_launches(judged):
        span = launch.called_at.span
        line = span.end.line
        if span.path != judged.source.path or not lines[0] <= line <= lines[1] or line in seen:
            continue
        seen.add(line)
        probed = known_of(judged, launch)
        number = steps_text(launch, probed) if client.inlay_grid_steps else None
        memory = memory_text(launch, judged, probed) if client.inlay_vmem else None
        told = [
            *([number] if number is not None and launch.has_grid else []),
            *([memory] if memory else []),
        ]
        if told:
            end = Position(line, len(judged.source.line(line)) + 1)
            yield lsp.InlayHint(
                position=to_lsp(judged.source, end, codec),
                label=", ".join(told),
                tooltip="as probed"
                if probed is not None
                else "as far as the text tells"
                if launch.witness is None
                else launch.witness.told(judged.source.path),
                padding_left=True,
            )
