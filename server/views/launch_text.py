"""A launch as Markdown: blocks, memory use and limits, calls, probe results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.server.probing.stored_results import launches_at
from pallas_lint.server.views.calls import calls_of
from pallas_lint.server.views.costs import cost_text
from pallas_lint.server.views.figures import (
    aval,
    backend_of,
    bracketed,
    given_types,
    known_of,
    launch_name,
    limits,
    memory_text,
    shared_of,
    steps_text,
    summary,
    verdicts,
)
from pallas_lint.server.views.markdown import Markdown, cell, code, joined, put, text

from pallas_lint.kernels.facts.memory_budget import budgets_of
from pallas_lint.kernels.facts.shared_memory import SHARED
from pallas_lint.kernels.grid.blocks import blocks_of
from pallas_lint.probe.byte_sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.kernels.facts.memory_budget import LaunchBudget, Part
    from pallas_lint.kernels.grid.blocks import Block
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.probe.results import LaunchResult

_MAX_CALLS = 5
_MAX_MAP_LENGTH = 48  # characters of an index map
_MAX_CALL_LENGTH = 80


def launch_text(launch: Launch, state: DocumentState) -> Markdown:
    """All facts about a launch."""
    probed = known_of(state, launch)
    budgets = budgets_of(launch, state.analysis) if backend_of(launch, state) in (None, "tpu") else ()
    steps = steps_text(launch, probed) if launch.has_grid else None
    about = text(", ".join(filter(None, (summary(launch, state), steps))))
    parts = [
        put("**{}** of {}: {}", code(launch.api.rpartition(".")[2]), code(launch_name(launch)), about),
        joined("\n", _table(launch, state, budgets)),
        *(_vmem(budget, state) for budget in budgets if budget.total),
        _smem(shared_of(launch, state)),
        joined("\n", _calls(launch, state)),
        joined("\n", _probed(launch, state, probed)),
    ]
    return joined("\n\n", parts)


def _table(launch: Launch, state: DocumentState, budgets: tuple[LaunchBudget, ...]) -> Iterator[Markdown]:
    """A row for each block: what the kernel gets of what, by which index map, and how much VMEM that takes."""
    blocks = blocks_of(launch, state.analysis)
    if blocks is None:
        return
    refs = [ref for trace in launch.traces[:1] for ref in trace.refs]
    names = {(ref.role, ref.index): ref.parameter for ref in refs}
    scratch = [ref.parameter for ref in refs if ref.role == "scratch"]
    if len(scratch) == len(blocks.scratch or ()):
        names |= {("scratch", at): name for at, name in enumerate(scratch)}
    takes = {part.name: part for part in budgets[0].parts} if budgets else {}
    rows = [tuple(map(text, ("ref", "", "block", "of", "index map", "VMEM")))]
    for block in (*blocks.operands, *(blocks.scratch or ())):
        if block is None:
            continue
        fallback = f"scratch {block.index}" if block.role == "scratch" else f"{block.role}put {block.index}"
        name = names.get((block.role, block.index), fallback)
        part = takes.get(name) or takes.get(fallback)
        memory = "" if part is None else f"{f'{part.count} x ' if part.count > 1 else ''}{format_bytes(part.bytes)}"
        rows.append((cell(name), text(block.role), *map(cell, _of_block(block)), text(memory)))
    if rows[1:]:
        # Without the columns in which nothing is known.
        shown = [column for column in zip(*rows, strict=True) if any(column[1:])]
        head, *lines = (_row(cells) for cells in zip(*shown, strict=True))
        yield from (head, put("|{}", joined("", (put(":--|") for _ in shown))), *lines)


def _row(cells: tuple[Markdown, ...]) -> Markdown:
    return joined("", (put("|"), *(put(" {} |", each) for each in cells)))


def _of_block(block: Block) -> tuple[str, str, str]:
    """The block, the array that it is cut out of, and the text of the index map; empty where that is not known."""
    array = aval(block.array_shape, block.dtype) if block.array_shape is not None else ""
    if block.dims is None:
        cut = ""
    else:
        sizes = tuple(dim.size for dim in block.dims if dim.kind != "squeezed")
        cut = aval(sizes, block.dtype)
    if block.space not in (None, "vmem"):
        cut = f"{cut} {block.space}".strip()
    index_map = ""
    if block.index_map is not None:
        function = block.index_map.func
        span = function.piece.span(function.node)
        source = function.piece.source
        written = " ".join(source.text[source.offset(span.start) : source.offset(span.end)].split())
        index_map = written if len(written) <= _MAX_MAP_LENGTH and written.startswith("lambda") else function.name
    return cut, "" if array == cut else array, index_map.removeprefix("lambda ")


def _vmem(budget: LaunchBudget, state: DocumentState) -> Markdown:
    """ "VMEM: at least 76 KiB, under 1 % of 16 MiB (v4, v5e, v5p), …", or of the limit that the launch sets.

    Facts that depend on defaults of parameters are marked.
    """
    by_limit: dict[int, list[Markdown]] = {}
    for device, limit in limits(budget, state).items():
        by_limit.setdefault(limit, []).append(
            text(device) if device else put("{} of the launch", code("vmem_limit_bytes"))
        )
    shares = [
        put("{} ({})", text(_share(budget.total, limit)), joined(", ", owners)) for limit, owners in by_limit.items()
    ]
    taken = put("**{}**", text(format_bytes(budget.total)))
    if not budget.assumed:
        return put("VMEM: at least {}", joined(", ", [taken, *shares]))
    on = put("VMEM: {} if {}", taken, text(", ".join(budget.assumed)))
    return joined(": ", (on, joined(", ", shares)))


def _smem(parts: tuple[Part, ...]) -> Markdown:
    """ "SMEM: at least 64 KiB, 28 % of 227 KiB: `x_smem` 2 x 32 KiB, …"; empty where it takes none."""
    if not parts:
        return text("")
    total = sum(part.total for part in parts)
    spaces = (
        put("{} {}", code(part.name), text(f"{f'{part.count} x ' if part.count > 1 else ''}{format_bytes(part.bytes)}"))
        for part in parts
    )
    share = text(_share(total, SHARED))
    return put("SMEM: at least **{}**, {}: {}", text(format_bytes(total)), share, joined(", ", spaces))


def _share(total: int, limit: int) -> str:
    if total > limit:
        return f"over {format_bytes(limit)}"
    share = 100 * total / limit
    return f"{f'{share:.0f}' if share >= 1 else 'under 1'} % of {format_bytes(limit)}"


def _calls(launch: Launch, state: DocumentState) -> Iterator[Markdown]:
    """The call that is shown, then others of the same function."""
    if launch.known_call is None:
        return
    yield put("called {}", text(launch.known_call.describe(state.source.path)))
    others = [each for each in calls_of(state, launch.known_call.name) if each != launch.known_call]
    if others:
        yield put("\nalso called:\n")
        for each in others[:_MAX_CALLS]:
            yield put("- {} in {}", code(each.brief(_MAX_CALL_LENGTH)), text(each.source))
        if len(others) > _MAX_CALLS:
            yield put("- and {} more", len(others) - _MAX_CALLS)


def _probed(launch: Launch, state: DocumentState, probed: LaunchResult | None) -> Iterator[Markdown]:
    """What was seen of it in the call that is shown, else in another one, or of another kernel, which are named."""
    place = launch.called_at.span
    seen = probed or next(launches_at(state.probed, place.path, place.start.line), None)
    if seen is None:
        return
    grid, known = seen.facts["grid"], seen.facts.get("memory")
    parts = [
        *([f"grid {bracketed(grid)}"] if grid else []),
        *([memory] if known and (memory := memory_text(launch, state, seen)) else []),
        *([] if probed is not None else [f"{seen.kernel} with {given_types(seen)}"]),
    ]
    yield put("as probed: {}\n", text(", ".join(parts) or "no grid"))
    yield text(verdicts([seen]))
    costs = cost_text([seen])
    if costs:
        yield put("\ncost: {}", text(costs))
