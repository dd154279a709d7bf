"""What is shown beside the code: hovers and inlay hints, from the analysis behind the findings and from probes."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pallas_lint.server.protocol.positions import from_lsp, range_of, to_lsp
from pallas_lint.server.views.figures import (
    aval,
    budget_of,
    known_of,
    launch_name,
    limits,
    memory_text,
    steps,
    summary,
)
from pallas_lint.server.views.markdown import code, plain

from pallas_lint import compat
from pallas_lint.backend_failures import BACKENDS
from pallas_lint.cli import support
from pallas_lint.finding import Position, Span
from pallas_lint.kernels.facts.memory_budget import size
from pallas_lint.kernels.model.trace import Op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.server.workspace.documents import Judged
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Finding
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.values import Ref
    from pallas_lint.probe.results import LaunchResult

_DOCS = "https://docs.jax.dev/en/latest/_autosummary/"
_MARKS = {"supported": "✓", "lowers": "✓", "depends": "part", "unsupported": "✗", "unknown": "?"}
_ROLES = {"prefetch": "scalar-prefetch operand", "in": "input", "out": "output", "scratch": "scratch"}


# -- hover -------------------------------------------------------------------------------------------------------------


def hover(judged: Judged, place: lsp.Position, codec: PositionCodec) -> lsp.Hover | None:
    """What is known of the thing at a place: a call in a kernel, a ref, a launch, or any function of jax's."""
    if judged.judgement is None or judged.judgement.analysis is None or not judged.client.hover:
        return None
    position = from_lsp(judged.source, place, codec)
    found = _hovered(judged, position)
    if found is None:
        return None
    span, text = found
    text = "\n\n".join((text, *_links(judged, position)))
    return lsp.Hover(
        contents=lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=text),
        range=range_of(judged.source, span, codec),
    )


def _hovered(judged: Judged, position: Position) -> tuple[Span, str] | None:
    assert judged.judgement is not None and judged.judgement.analysis is not None
    analysis = judged.judgement.analysis
    found: tuple[Span, str] | None = None
    for trace in analysis.traces:
        found = _hovered_op(trace, judged, position) or _hovered_ref(trace, judged, position) or found
    if found is not None:
        return found
    for launch in analysis.launches:
        span = launch.called_at.span
        if _inside(span, judged, position):
            return span, _launch_text(launch, judged)
    for use in analysis.module.uses.all:
        if use.name.startswith("jax.") and not use.imported and _inside(use.span, judged, position):
            text = _support_text(use.name, judged)
            if text:
                return use.span, f"**`{support.short(use.name)}`**\n\n{text}"
    return None


def _links(judged: Judged, position: Position) -> Iterator[str]:
    """The pages of the rules that say something here."""
    codes = {each.code: each for each in judged.findings if _inside(each.span, judged, position)}
    if codes:
        yield " · ".join(_link(finding) for _, finding in sorted(codes.items()))


def _link(finding: Finding) -> str:
    text = plain(f"{finding.code} {finding.name}")
    return f"[{text}]({finding.url})" if re.fullmatch(r"https?://[^\s()<>]+", finding.url) else text


def _inside(span: Span, judged: Judged, position: Position) -> bool:
    return span.path == judged.source.path and span.start <= position <= span.end


def _hovered_op(trace: KernelTrace, judged: Judged, position: Position) -> tuple[Span, str] | None:
    """The innermost call of a jax function at the place: its name only, not its arguments."""
    best: tuple[Span, str] | None = None
    for op in trace.events:
        if not isinstance(op, Op) or op.form != "call" or not op.name.startswith("jax."):
            continue
        function = getattr(op.site.node, "func", None)
        if function is None or op.site.piece.source.path != judged.source.path:
            continue
        span = op.site.piece.span(function)
        if span.start <= position <= span.end:
            best = span, _op_text(op, trace.launch, judged)
    return best


def _op_text(op: Op, launch: Launch, judged: Judged) -> str:
    parts = [f"**`{support.short(op.name)}`** in kernel `{launch_name(launch)}`"]
    shape, dtype = getattr(op.result, "shape", None), getattr(op.result, "dtype", None)
    if dtype is not None or shape is not None:
        parts[0] += f" gives `{aval(shape, dtype)}`"
    parts.append(_support_text(op.name, judged, launch.backend))
    return "\n\n".join(part for part in parts if part)


def _support_text(name: str, judged: Judged, backend: str | None = None) -> str:
    """Where and since when a function works in kernels; `backend` is that of the kernel at hand."""
    assert judged.settings is not None
    parts: list[str] = []
    if compat.function(name) is not None:
        told = support.describe("function", name, support.BACKENDS, ())
        version = compat.nearest(judged.settings.jax.newest)
        parts.append(_support_table(told, version, backend))
        for each, shown in told["backends"].items():
            if shown["instead"] and shown["status"] in ("unsupported", "depends"):
                parts.append(f"instead, on {BACKENDS[each]}: {'; '.join(shown['instead'])}")
    elif compat.api(name) is not None or compat.replacement(name) is not None:
        parts.append(_history_text(support.describe("api", name, (), ())))
    if parts and name.startswith("jax."):
        parts.append(f"[documentation]({_DOCS}{name}.html)")
    return "\n\n".join(part for part in parts if part)


def _support_table(told: dict[str, Any], version: str, backend: str | None) -> str:
    """A row for each backend: the dtypes that work in this version, and all versions; a column for those alike."""
    versions = told["versions"]
    at = versions.index(version) if version in versions else len(versions) - 1
    shown = told["backends"]
    marks = [
        tuple(_over_dtypes([row[column] for row in each["dtypes"].values()]) for each in shown.values())
        for column in range(len(versions))
    ]
    alike = [list(group) for _, group in groupby(range(len(versions)), key=marks.__getitem__)]
    ranges = [versions[group[0]] + (f" to {versions[group[-1]]}" if group[1:] else "") for group in alike]
    rows = [f"| | jax {versions[at]} | {' | '.join(ranges)} |", f"|---|---|{':-:|' * len(ranges)}"]
    for number, (name, each) in enumerate(shown.items()):
        mark = " (this kernel)" if name == backend else ""
        dtypes = {dtype: row[at] for dtype, row in each["dtypes"].items()}
        cells = [marks[group[0]][number] for group in alike]
        rows.append(f"| {BACKENDS[name]}{mark} | {_dtypes_text(dtypes)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _over_dtypes(statuses: list[str]) -> str:
    """The mark for all dtypes together."""
    marks = {_MARKS[status] for status in statuses if status != "unknown"}
    return "?" if not marks else marks.pop() if len(marks) == 1 else "part"


def _dtypes_text(dtypes: dict[str, str]) -> str:
    """ "works for f32 bf16, not for i8"."""
    works = [dtype for dtype, status in dtypes.items() if status in ("supported", "lowers")]
    partly = [dtype for dtype, status in dtypes.items() if status == "depends"]
    fails = [dtype for dtype, status in dtypes.items() if status == "unsupported"]
    if not (works or partly or fails):
        return "not measured"
    if not fails and not partly:
        return "works"
    if not works and not partly:
        return "does not work"
    told = [f"works for {' '.join(works)}"] if works else []
    told += [f"in part for {' '.join(partly)}"] if partly else []
    told += [f"not for {' '.join(fails)}"] if fails else []
    return ", ".join(told)


def _history_text(told: dict[str, Any]) -> str:
    words = []
    if told.get("added"):
        words.append(f"since jax {told['added']}")
    if told.get("deprecated"):
        words.append(f"deprecated since {told['deprecated']}")
    if told.get("removed"):
        words.append(f"removed in {told['removed']}")
    replacement = told.get("replacement")
    if replacement is not None:
        new = f"`{support.short(replacement['new'])}`: " if replacement["new"] else ""
        words.append(f"instead: {new}{replacement['note']}")
    return "; ".join(words)


def _hovered_ref(trace: KernelTrace, judged: Judged, position: Position) -> tuple[Span, str] | None:
    probed = known_of(judged, trace.launch)
    for ref, span in _parameters(trace, judged):
        if span.start <= position <= span.end:
            return span, _ref_text(ref, probed)
    word = _word_at(judged, position)
    if word is None or not any(_inside(body.piece.span(body.node), judged, position) for body in trace.launch.bodies):
        return None
    text, span = word
    return next(((span, _ref_text(ref, probed)) for ref in trace.refs if ref.parameter == text), None)


def _word_at(judged: Judged, position: Position) -> tuple[str, Span] | None:
    for match in re.finditer(r"[^\W\d]\w*", judged.source.line(position.line)):
        if match.start() + 1 <= position.column <= match.end() + 1:
            start, end = Position(position.line, match.start() + 1), Position(position.line, match.end() + 1)
            return match[0], Span(judged.source.path, start, end)
    return None


def _ref_text(ref: Ref, probed: LaunchResult | None) -> str:
    role = _ROLES.get(ref.role or "", "ref")
    number = f" {ref.index}" if ref.index is not None and ref.role in ("in", "out") else ""
    space = f" in {ref.space.upper()}" if ref.space else ""
    text = f"**`{ref.parameter}`**: {role}{number}, block `{aval(ref.shape, ref.dtype)}`{space}"
    operand = _operand(probed, ref)
    if operand is None:
        return text
    block = "" if operand["block"] in (None, operand["shape"]) else f" in blocks of {_sizes(operand['block'])}"
    where = f" in {plain(operand['memory_space'].upper())}" if operand["memory_space"] else ""
    return f"{text}\n\nas probed: {code(operand['dtype'] + _sizes(operand['shape']))}{block}{where}"


def _sizes(sizes: list[int]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _operand(probed: LaunchResult | None, ref: Ref) -> dict[str, Any] | None:
    """What a probe saw of a ref."""
    operands = probed.facts["operands"] if probed is not None else ()
    return next((each for each in operands if each["name"] == ref.parameter), None)


def _launch_text(launch: Launch, judged: Judged) -> str:
    probed = known_of(judged, launch)
    parts = [f"**`{launch.api.rpartition('.')[2]}`** of `{launch_name(launch)}`: {summary(launch)}"]
    number = steps(launch, probed)
    if number is not None and launch.has_grid:
        parts[0] += f", {number:,} steps"
    budget = budget_of(launch, judged)
    if budget is not None:
        rows = [f"| {part.name} | {part.count} x {size(part.bytes)} |" for part in budget.parts]
        table = ["| VMEM, at least | |", "|---|---|", *rows, f"| **sum** | **{size(budget.total)}** |"]
        allowed = limits(budget, judged)
        for device, limit in allowed.items():
            share = f"{'over' if budget.total > limit else f'{100 * budget.total / limit:.0f} % of'} {size(limit)}"
            table.append(f"| {device or 'limit of the launch'} | {share} |")
        parts.append("\n".join(table))
    if probed is not None:
        known = memory_text(launch, judged, probed) if probed.facts.get("memory") else None
        grid = probed.facts["grid"]
        told = [*([f"grid {_sizes(grid)}"] if grid else []), *([known] if known else [])]
        parts.append(f"as probed: {plain(', '.join(told) or 'no grid')}")
    return "\n\n".join(parts)


# -- inlay hints -------------------------------------------------------------------------------------------------------


def inlay_hints(judged: Judged, asked: lsp.Range, codec: PositionCodec) -> list[lsp.InlayHint]:
    """The type of each ref behind its parameter, as `x_ref: f32[8, 128]`; steps and memory behind a launch."""
    if judged.judgement is None or judged.judgement.analysis is None or not judged.client.inlay_hints:
        return []
    first, last = asked.start.line + 1, asked.end.line + 1
    hints: dict[Position, tuple[str, str | None] | None] = {}
    for trace in judged.judgement.analysis.traces if judged.client.inlay_dtype else ():
        probed = known_of(judged, trace.launch)
        for ref, span in _parameters(trace, judged):
            if first <= span.start.line <= last:
                label = _ref_hint(ref, probed)
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


def _ref_hint(ref: Ref, probed: LaunchResult | None) -> tuple[str, str | None] | None:
    """The type from the text; where that leaves something open, the one that was probed, with where it comes from."""
    label = aval(ref.shape, ref.dtype)
    operand = _operand(probed, ref)
    if operand is not None and ("?" in label or any(not isinstance(each, int) for each in ref.shape or ())):
        seen = f"{operand['dtype']}{_sizes(operand['block'] or operand['shape'])}"
        space = operand["memory_space"]
        return (f"{seen} {space}" if space and space not in ("vmem", ref.space) else seen), "as probed"
    return (label, None) if ref.shape is not None or ref.dtype is not None else None


def _launch_hints(judged: Judged, lines: tuple[int, int], codec: PositionCodec) -> Iterator[lsp.InlayHint]:
    """At the end of a launch's first line: over how many points it runs, and what it takes of VMEM."""
    assert judged.judgement is not None and judged.judgement.analysis is not None
    client = judged.client
    seen: set[int] = set()
    for launch in judged.judgement.analysis.launches:
        span = launch.called_at.span
        line = span.end.line
        if span.path != judged.source.path or not lines[0] <= line <= lines[1] or line in seen:
            continue
        seen.add(line)
        probed = known_of(judged, launch)
        number = steps(launch, probed) if client.inlay_grid_steps else None
        memory = memory_text(launch, judged, probed) if client.inlay_vmem else None
        told = [
            *([f"{number:,} steps"] if number is not None and launch.has_grid else []),
            *([memory] if memory else []),
        ]
        if told:
            end = Position(line, len(judged.source.line(line)) + 1)
            yield lsp.InlayHint(
                position=to_lsp(judged.source, end, codec),
                label=", ".join(told),
                tooltip="as probed" if probed is not None else "as far as the text tells",
                padding_left=True,
            )


def _parameters(trace: KernelTrace, judged: Judged) -> Iterator[tuple[Ref, Span]]:
    """The refs of a kernel with the places of their parameters, where each is one."""
    by_name = {ref.parameter: ref for ref in trace.refs}
    for body in trace.launch.bodies:
        if body.piece.source.path != judged.source.path:
            continue
        parameters = body.node.params
        for parameter in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params):
            ref = by_name.get(parameter.name.value)
            if ref is not None and parameter.annotation is None:
                yield ref, body.piece.span(parameter.name)
