"""What is shown beside the code: hovers, inlay hints and code lenses, from the analysis behind the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types as lsp
from pallas_lint.server.positions import from_lsp, range_of, to_lsp

from pallas_lint import compat
from pallas_lint.finding import Position
from pallas_lint.kernels.blocks import blocks_of
from pallas_lint.kernels.trace import Op
from pallas_lint.kernels.values import Ref, Sym

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pallas_lint.server.documents import Judged
    from pygls.workspace import PositionCodec

    from pallas_lint.finding import Span
    from pallas_lint.kernels.launch import Launch
    from pallas_lint.kernels.trace import KernelTrace
    from pallas_lint.kernels.values import Shape
    from pallas_lint.settings import Settings

_BACKENDS = {"tpu": "TPU", "triton": "Triton", "mosaic_gpu": "Mosaic GPU"}
_WORDS = {"supported": "works", "depends": "depends on dtype or form", "unsupported": "does not work"}
_DOCS = "https://docs.jax.dev/en/latest/_autosummary/"


# -- hover -------------------------------------------------------------------------------------------------------------


def hover(judged: Judged, place: lsp.Position, codec: PositionCodec) -> lsp.Hover | None:
    """What is known of the thing at a place: a call in a kernel, a ref, or a launch."""
    if judged.judgement is None or judged.judgement.analysis is None or judged.settings is None:
        return None
    position = from_lsp(judged.source, place, codec)
    analysis = judged.judgement.analysis
    found: tuple[Span, str] | None = None
    for trace in analysis.traces:
        found = _hovered_op(trace, judged, position) or _hovered_ref(trace, judged, position) or found
    for launch in analysis.launches:
        span = launch.called_at.span
        if found is None and _inside(span, judged, position):
            found = span, _launch_text(launch, judged)
    if found is None:
        return None
    span, text = found
    return lsp.Hover(
        contents=lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=text),
        range=range_of(judged.source, span, codec),
    )


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
            assert judged.settings is not None
            best = span, _op_text(op, trace.launch, judged.settings)
    return best


def _op_text(op: Op, launch: Launch, settings: Settings) -> str:
    lines = [f"**`{_short(op.name)}`** in kernel `{launch_name(launch)}`"]
    result = op.result
    shape, dtype = getattr(result, "shape", None), getattr(result, "dtype", None)
    if dtype is not None or shape is not None:
        lines.append(f"gives `{_aval(shape, dtype)}`")
    support = compat.function(op.name)
    if support is not None:
        version = settings.jax.newest
        rows = []
        for backend in ("tpu", "triton", "mosaic_gpu"):
            status = compat.status(op.name, backend, version)
            word = _WORDS.get(status, "not measured")
            mark = " (this kernel)" if launch.backend == backend else ""
            rows.append(f"| {_BACKENDS[backend]}{mark} | {word} |")
        lines.append(f"\n| jax {version} | |\n|---|---|\n" + "\n".join(rows))
    lines.append(f"\n[documentation]({_DOCS}{op.name}.html)")
    return "  \n".join(lines)


def _short(name: str) -> str:
    for long, short in (("jax.numpy.", "jnp."), ("jax.lax.", "lax."), ("jax.experimental.pallas.", "pl.")):
        if name.startswith(long):
            return f"{short}{name[len(long) :]}"
    return name


def _hovered_ref(trace: KernelTrace, judged: Judged, position: Position) -> tuple[Span, str] | None:
    for ref, span in _parameters(trace, judged):
        if span.start <= position <= span.end:
            return span, _ref_text(ref)
    word = _word_at(judged, position)
    if word is None or not any(_inside(body.piece.span(body.node), judged, position) for body in trace.launch.bodies):
        return None
    text, span = word
    return next(((span, _ref_text(ref)) for ref in trace.refs if ref.parameter == text), None)


def _word_at(judged: Judged, position: Position) -> tuple[str, Span] | None:
    import re

    from pallas_lint.finding import Span

    for match in re.finditer(r"[^\W\d]\w*", judged.source.line(position.line)):
        if match.start() + 1 <= position.column <= match.end() + 1:
            start, end = Position(position.line, match.start() + 1), Position(position.line, match.end() + 1)
            return match[0], Span(judged.source.path, start, end)
    return None


_ROLES = {"prefetch": "scalar-prefetch operand", "in": "input", "out": "output", "scratch": "scratch"}


def _ref_text(ref: Ref) -> str:
    role = _ROLES.get(ref.role or "", "ref")
    number = f" {ref.index}" if ref.index is not None and ref.role in ("in", "out") else ""
    space = f" in {ref.space.upper()}" if ref.space else ""
    return f"**`{ref.parameter}`**: {role}{number}, block `{_aval(ref.shape, ref.dtype)}`{space}"


def _launch_text(launch: Launch, judged: Judged) -> str:
    lines = [f"**`{launch.api.rpartition('.')[2]}`** of `{launch_name(launch)}`: {_summary(launch)}"]
    rows, total = _memory_rows(launch, judged)
    if rows:
        lines.append("\n| block | shape | bytes |\n|---|---|---|\n" + "\n".join(rows))
        if total:
            lines.append(f"\nat least {total:,} bytes on chip")
    return "  \n".join(lines)


def _memory_rows(launch: Launch, judged: Judged) -> tuple[list[str], int | None]:
    """A row for each block, and the sum; None for the sum where the size of one is not known."""
    assert judged.judgement is not None and judged.judgement.analysis is not None
    blocks = blocks_of(launch, judged.judgement.analysis.interpreter)
    if blocks is None:
        return [], None
    rows: list[str] = []
    total: int | None = 0
    for block in (*(blocks.inputs or ()), *(blocks.outputs or ()), *(blocks.scratch or ())):
        if block is None:
            total = None
            continue
        copies = 1 if block.role == "scratch" or not blocks.grid.rank else block.buffers or 2
        size = f"{copies} times {block.bytes:,}" if block.bytes is not None else "?"
        rows.append(f"| {_ROLES[block.role]} {block.index} | `{_aval(block.block_shape, block.dtype)}` | {size} |")
        total = None if total is None or block.bytes is None else total + copies * block.bytes
    return rows, total


# -- inlay hints -------------------------------------------------------------------------------------------------------


def inlay_hints(judged: Judged, asked: lsp.Range, codec: PositionCodec) -> list[lsp.InlayHint]:
    """The type of each ref behind its parameter: `x_ref: f32[8, 128]`."""
    if judged.judgement is None or judged.judgement.analysis is None:
        return []
    first, last = asked.start.line + 1, asked.end.line + 1
    hints: dict[Position, str | None] = {}
    for trace in judged.judgement.analysis.traces:
        for ref, span in _parameters(trace, judged):
            if first <= span.start.line <= last and (ref.shape is not None or ref.dtype is not None):
                label = _aval(ref.shape, ref.dtype)
                # A kernel of several launches has the hint only where they agree.
                hints[span.end] = label if hints.get(span.end, label) == label else None
    return [
        lsp.InlayHint(
            position=to_lsp(judged.source, position, codec),
            label=f": {label}",
            kind=lsp.InlayHintKind.Type,
            padding_left=False,
            padding_right=False,
        )
        for position, label in sorted(hints.items())
        if label is not None
    ]


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


# -- code lenses -------------------------------------------------------------------------------------------------------


def code_lenses(judged: Judged, codec: PositionCodec, facts: dict[str, Any] | None) -> list[lsp.CodeLens]:
    """Over each kernel and launch: backend and grid, what the last probe said, and a way to probe."""
    if judged.judgement is None or judged.judgement.analysis is None:
        return []
    lenses: list[lsp.CodeLens] = []
    seen: set[int] = set()
    for launch in judged.judgement.analysis.launches:
        span = launch.called_at.span
        if span.path != judged.source.path or span.start.line in seen:
            continue
        seen.add(span.start.line)
        title = f"{launch_name(launch)}: {_summary(launch)}"
        probed = _probed(launch, facts)
        where = range_of(judged.source, span, codec)
        lenses.append(lsp.CodeLens(range=where, command=_command(f"{title}{probed}", launch, judged)))
    return lenses


def _command(title: str, launch: Launch, judged: Judged) -> lsp.Command:
    return lsp.Command(
        title=title, command="pallasLint.probe", arguments=[judged.uri, launch.scope, launch.site.span.start.line]
    )


def _probed(launch: Launch, facts: dict[str, Any] | None) -> str:
    line = launch.called_at.span.start.line
    known = next((each for each in (facts or {}).get("launches", ()) if each["line"] == line), None)
    if known is None:
        return ""
    failed = [stage for stage in known["stages"] if stage["ok"] is False]
    return f" | probed: {'; '.join(sorted({stage['stage'] for stage in failed}))} failed" if failed else " | probed: ok"


def _summary(launch: Launch) -> str:
    """ "TPU, grid (4, n)"."""
    parts = [_BACKENDS.get(launch.backend or "", "backend not known")]
    if launch.grid is not None:
        sizes = ", ".join(_size(item) for item in launch.grid.items)
        parts.append(f"grid ({sizes}{', …' if launch.grid.open else ''})")
    if launch.interpret:
        parts.append("interpreted")
    return ", ".join(parts)


def launch_name(launch: Launch) -> str:
    """The kernel's name."""
    return launch.traces[0].name if launch.traces else next((body.name for body in launch.bodies), "kernel")


def _size(value: object) -> str:
    if isinstance(value, Sym):
        return value.text
    return str(getattr(value, "value", "?"))


def _aval(shape: Shape | None, dtype: str | None) -> str:
    """ "f32[8, n]", with ? for what is not known."""
    sizes = "?" if shape is None else ", ".join("?" if size is None else _dim(size) for size in shape)
    return f"{dtype or '?'}[{sizes}]"


def _dim(size: int | Sym) -> str:
    return size.text if isinstance(size, Sym) else str(size)
