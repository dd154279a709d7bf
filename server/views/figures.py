"""Short texts for a launch: backend, grid, memory, types of refs; known from the text or from a probe."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from pallas_lint.server.probing.stored_results import launches_at

from pallas_lint.checker.backend_failures import BACKENDS
from pallas_lint.checker.targeting import targets_of
from pallas_lint.compat.chips import CHIPS
from pallas_lint.kernels.facts.memory_budget import budgets_of
from pallas_lint.kernels.facts.shared_memory import SHARED, shared_memory
from pallas_lint.kernels.model.dtypes import canonical
from pallas_lint.kernels.model.known_names import is_spec
from pallas_lint.kernels.model.values import NONE, Array, Value, options, spelled_dim, spelled_size
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.text.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.server.workspace.document_state import DocumentState

    from pallas_lint.config.targets import Backend
    from pallas_lint.finding import Span
    from pallas_lint.kernels.facts.memory_budget import LaunchBudget, Part
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.kernels.model.values import Ref, Shape, Value
    from pallas_lint.probe.protocol import OperandFacts
    from pallas_lint.probe.results import LaunchResult

_MAX_GRID_LENGTH = 32  # characters, over a line
_BLOCKS_IN = {"tpu": "vmem", "mosaic_gpu": "smem"}  # by backend; where a spec does not name one


def launch_name(launch: Launch) -> str:
    """The kernel's name."""
    return launch.traces[0].name if launch.traces else next((body.name for body in launch.bodies), "kernel")


def backend_of(launch: Launch, state: DocumentState) -> Backend | None:
    """The backend that a launch is judged for: the one that was chosen, else its own, else the one presumed."""
    targets = targets_of(launch, state.settings) if state.settings is not None else None
    backends = {target.backend for target in targets or ()}
    inferred = state.analysis.inferred_backends.get(launch)
    if len(backends) == 1:
        return backends.pop()
    return launch.backend or (inferred.backend if inferred is not None else None)


def summary(launch: Launch, state: DocumentState, probed: LaunchResult | None = None) -> str:
    """ "TPU, grid (4, n)"; with the numbers where it was probed."""
    parts = (_on(launch, state, probed), _grid(launch, probed), "interpreted" if launch.interpret else None)
    return ", ".join(filter(None, parts))


def _grid(launch: Launch, probed: LaunchResult | None) -> str | None:
    """ "grid (4, n)", with the numbers where it was probed."""
    known = _probed_grid(probed)
    if known is not None or launch.grid is None:
        return known
    sizes = ", ".join(map(spelled_size, launch.grid.items))
    return f"grid ({sizes}{', …' if launch.grid.open else ''})"


def brief_summary(launch: Launch, state: DocumentState, probed: LaunchResult | None) -> str:
    """ "TPU · grid (4, n) · VMEM 384 KiB": what fits over a line; ≥ where it may be more."""
    grid = _grid(launch, probed)
    if grid is not None and len(grid) > _MAX_GRID_LENGTH:
        rank = len(launch.grid.items) if launch.grid is not None else 0
        grid = f"grid of {rank} axes" if rank > 1 else "grid"
    parts = (_on(launch, state, probed), grid, "interpreted" if launch.interpret else None)
    return " · ".join(filter(None, (*parts, brief_memory(launch, state, probed))))


def brief_memory(launch: Launch, state: DocumentState, probed: LaunchResult | None) -> str | None:
    """ "VMEM 384 KiB", "SMEM ≥ 64 KiB"; with what there is of it where it takes more than half."""
    known = probed.facts.get("memory") if probed is not None else None
    if known:
        return _taken(known["space"].upper(), known["bytes"], known["limit"])
    shared = sum(part.total for part in shared_of(launch, state))
    if shared:
        return _taken("SMEM ≥", shared, SHARED)
    budget = budget_of(launch, state)
    return None if budget is None else _taken("VMEM ≥", budget.total, min(limits(budget, state).values(), default=None))


def _taken(space: str, taken: int, limit: int | None) -> str:
    most = f" of {format_bytes(limit)}" if limit is not None and 2 * taken > limit else ""
    return f"{space} {format_bytes(taken)}{most}"


def passed_summary(launch: Launch, state: DocumentState, probed: LaunchResult | None) -> str:
    """The summary of a kernel that is passed to a launch which was analysed with another kernel.

    Grid and memory of the analysed launch need not be those of this kernel.
    """
    through = f"launched through {launch.scope}" if launch.scope else ""
    memory = brief_memory(launch, state, probed) if probed is not None else None
    return " · ".join(filter(None, (_on(launch, state, probed), _probed_grid(probed), through, memory)))


def known_of(state: DocumentState, launch: Launch) -> LaunchResult | None:
    """What the last probe saw of a launch, in the call that is shown."""
    line, kernel = launch.called_at.span.start.line, launch.traces[0].name if launch.traces else None
    seen = launches_at(state.probed, state.source.path, line, kernel)
    return next((each for each in seen if agrees(launch, each)), None)


def agrees(launch: Launch, probed: LaunchResult) -> bool:
    """Whether a launch's known operands agree with those in a probe: it may be of another call."""
    given = given_operands(probed)
    operands = launch.operands if launch.operands is not None and not launch.operands_open else []
    return len(operands) != len(given) or all(map(_may_be, operands, given))


def _may_be(operand: Value, seen: OperandFacts) -> bool:
    if not isinstance(operand, Array):
        return True
    shape = operand.shape if operand.shape is not None else tuple(seen["shape"])
    same = all(size == other for size, other in zip(shape, seen["shape"], strict=False) if isinstance(size, int))
    return len(shape) == len(seen["shape"]) and same and canonical(operand.dtype) in (None, canonical(seen["dtype"]))


def given_operands(probed: LaunchResult) -> list[OperandFacts]:
    """The operands that a launch was given, in order."""
    return [each for each in probed.facts["operands"] if each["role"] in ("prefetch", "in")]


def given_types(probed: LaunchResult) -> str:
    """ "f32[512,512], f32[512,512]": what a launch was given."""
    return ", ".join(f"{each['dtype']}[{','.join(map(str, each['shape']))}]" for each in given_operands(probed))


def _on(launch: Launch, state: DocumentState, probed: LaunchResult | None) -> str:
    backend = backend_of(launch, state) or (probed.backend if probed else None)
    return BACKENDS.get(backend or "", "backend not known")


def _probed_grid(probed: LaunchResult | None) -> str | None:
    grid = probed.facts["grid"] if probed is not None else None
    return f"grid ({', '.join(map(str, grid))})" if grid else None


def _probed_memory(probed: LaunchResult | None) -> str | None:
    known = probed.facts.get("memory") if probed is not None else None
    if not known:
        return None
    return (
        f"{known['space'].upper()} {format_bytes(known['bytes'])} of {format_bytes(known['limit'])} ({known['device']})"
    )


def budget_of(launch: Launch, state: DocumentState) -> LaunchBudget | None:
    """What the launch certainly takes of VMEM; None where that is nothing, or not a TPU's concern."""
    if backend_of(launch, state) not in (None, "tpu"):
        return None
    budgets = budgets_of(launch, state.analysis)
    return budgets[0] if budgets and budgets[0].total else None


def shared_of(launch: Launch, state: DocumentState) -> tuple[Part, ...]:
    """What the launch certainly takes of a GPU's shared memory, where it is a Mosaic GPU kernel."""
    if backend_of(launch, state) != "mosaic_gpu" or launch.form.is_inner:
        return ()
    return shared_memory(launch, state.analysis)


def limits(budget: LaunchBudget, state: DocumentState) -> dict[str, int]:
    """Bytes of VMEM that the launch may take, by device: of the targets' devices, else of all."""
    if budget.limit is not None:
        return {"": budget.limit}
    if not budget.limit_known:
        return {}
    targets = state.settings.target if state.settings is not None else ()
    devices = [target.device for target in targets if target.backend == "tpu" and target.device is not None]
    limits = {device: CHIPS[device].default_vmem for device in (devices or CHIPS) if device in CHIPS}
    return {device: limit for device, limit in limits.items() if limit is not None}


def memory_text(launch: Launch, state: DocumentState, probed: LaunchResult | None) -> str | None:
    """ "VMEM 384 KiB of 16 MiB (v5e)", as probed; "VMEM at least 384 KiB of 16 MiB", as far as the text shows."""
    known = _probed_memory(probed)
    if known is not None:
        return known
    shared = sum(part.total for part in shared_of(launch, state))
    if shared:
        return f"SMEM at least {format_bytes(shared)} of {format_bytes(SHARED)}"
    budget = budget_of(launch, state)
    if budget is None:
        return None
    least = min(limits(budget, state).values(), default=None)
    return f"VMEM at least {format_bytes(budget.total)}" + ("" if least is None else f" of {format_bytes(least)}")


def steps(launch: Launch, probed: LaunchResult | None) -> int | None:
    """Over how many points the grid runs; None where that is not known from the text or a probe."""
    grid = probed.facts["grid"] if probed is not None else None
    if grid:
        return prod(map(int, grid))
    if launch.grid is None or launch.grid.open:
        return None
    sizes: list[int] = []
    for item in launch.grid.items:
        size = getattr(item, "value", None)
        if not isinstance(size, int):
            return None
        sizes.append(size)
    return prod(sizes)


def steps_text(launch: Launch, probed: LaunchResult | None) -> str | None:
    """ "1 step", "4,096 steps"; None where that is not known."""
    number = steps(launch, probed)
    return None if number is None else f"{number:,} {plural('step', number)}"


def aval(shape: Shape | None, dtype: str | None) -> str:
    """ "f32[8, n]"; what is not known is left out, and a dimension "_": "[8, _]", "f32", "" where nothing is."""
    sizes = "" if shape is None else f"[{', '.join('_' if size is None else spelled_dim(size) for size in shape)}]"
    return f"{dtype or ''}{sizes}"


def verdicts(launches: Iterable[LaunchResult]) -> str:
    """ "✓ tpu:v5e  ✗ triton: lower  ✗ grid": each target with the stage that failed; what holds on any by itself.

    While a probe goes on, these are the verdicts so far.
    """
    launches = list(launches)
    until = " so far" if any(launch.goes_on for launch in launches) else ""
    return f"probed{until}: {brief_verdicts(launches)}"


def brief_verdicts(launches: Iterable[LaunchResult]) -> str:
    """`verdicts` without the word "probed"."""
    found: dict[str, str] = {}
    for launch in launches:
        for stage in launch.stages:
            name = stage.target or stage.stage
            if stage.ok is False:
                found[name] = f"✗ {stage.target}: {stage.stage}" if stage.target else f"✗ {stage.stage}"
            elif stage.target and stage.ok and not found.get(name, "").startswith("✗"):
                found[name] = f"✓ {stage.target}" + ("" if stage.stage == "compile" else f" ({stage.stage})")
    return "  ".join(found.values()) if found else "✓"


def bracketed(sizes: list[int]) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def operand_of(probed: LaunchResult | None, ref: Ref) -> OperandFacts | None:
    """What a probe saw of a ref."""
    operands = probed.facts["operands"] if probed is not None else ()
    return next((each for each in operands if each["name"] == ref.parameter), None)


def space_of(ref: Ref, launch: Launch, state: DocumentState, probed: LaunchResult | None) -> str | None:
    """The memory that a ref is in: as it is declared, else the default of blocks, else as probed."""
    if ref.space is not None:
        return ref.space
    default = _BLOCKS_IN.get(backend_of(launch, state) or "") if launch.form.refs == "blocks" else None
    if default is not None and ref.role in ("in", "out") and _leaves_space_open(ref, launch):
        return default
    operand = operand_of(probed, ref)
    return operand["memory_space"] if operand is not None else None


def _leaves_space_open(ref: Ref, launch: Launch) -> bool:
    """Whether the ref certainly has no declared memory."""
    specs = _specs_of(ref, launch)
    if specs:
        return all(is_spec(spec) and not spec.open and spec.argument("memory_space") in (None, NONE) for spec in specs)
    return not launch.open and launch.argument(f"{ref.role}_specs", "grid_spec") is None


def _specs_of(ref: Ref, launch: Launch) -> list[Value]:
    """The spec of a block, or those among which a branch chooses; none where that is not known."""
    if ref.declared is not None:
        return [ref.declared]
    specs = launch.in_specs if ref.role == "in" else launch.out_specs
    if specs is None or ref.index is None or ref.index >= len(specs.items):
        return []
    return [option for option in options(specs.items[ref.index]) if option != NONE]


def ref_parameters(trace: KernelTrace, state: DocumentState) -> Iterator[tuple[Ref, Span]]:
    """The refs of a kernel with the places of their parameters, where each is one."""
    by_name = {ref.parameter: ref for ref in trace.refs}
    for body in trace.launch.bodies:
        if body.piece.source.path != state.source.path:
            continue
        parameters = body.node.params
        for parameter in parameters.named:
            ref = by_name.get(parameter.name.value)
            if ref is not None and parameter.annotation is None:
                yield ref, body.piece.span(parameter.name)
