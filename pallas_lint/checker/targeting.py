"""The targets (backend and device) that a launch is checked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.chips import SPARSE, knowing
from pallas_lint.compat.versions import cuda_default
from pallas_lint.config.targets import Target
from pallas_lint.kernels.launches.backend import STRONG, leaves_backend_open
from pallas_lint.kernels.model.trace import Capture
from pallas_lint.kernels.model.values import Const, Sym
from pallas_lint.records import evolve
from pallas_lint.syntax import nodes

if TYPE_CHECKING:
    from pallas_lint.config.settings import Settings
    from pallas_lint.finding import Span
    from pallas_lint.kernels.model.launch import Launch
    from pallas_lint.kernels.model.trace import Guard


def targets_of(launch: Launch, settings: Settings) -> tuple[Target, ...] | None:
    """The targets that a launch is checked for: its own backend where the code names it, else the configured targets.

    Empty where the backend is not known. None where it is checked for none: pinned to a backend that is not a target,
    for a device that the jax versions do not have, or in interpret mode, where no backend compiles it. What runs on
    SparseCores is judged for those of the targets.
    """
    # A known call in interpret mode is no evidence of what compilers do with such shapes, for any target.
    if launch.is_interpreted_call or (launch.interpret and not settings.target):
        return None
    known = tuple(target for target in settings.target if knowing(target.device, settings.jax.versions))
    if settings.target and not known:
        return None
    if sparse_core(launch) is not None:
        return _on_sparse_cores(known)
    requested = tuple(target for target in known if target.core != "sparse")
    if launch.backend is not None and (launch.evidence in STRONG or not settings.target):
        if not _may_be_compiled_by(launch, settings.jax.versions):
            return ()
        own = tuple(target for target in requested if target.backend == launch.backend)
        return (own or None) if settings.target else (Target(launch.backend),)
    return requested if requested or not settings.target else None


def _may_be_compiled_by(launch: Launch, versions: tuple[str, ...]) -> bool:
    """Whether a launch that only the imports of its file assign to Mosaic GPU is compiled by it.

    They may be for other launches of the file: without parameters, `pallas_call` takes the default of CUDA.
    """
    if launch.backend != "mosaic_gpu" or launch.evidence in STRONG or not leaves_backend_open(launch):
        return True
    return all(cuda_default(version) == "mosaic_gpu" for version in versions)


def sparse_core(launch: Launch) -> str | None:
    """The subcore of a SparseCore that a launch, or the kernel that it is part of, runs on; None: no SparseCore."""
    return next((each.core for each in (launch, *(t.launch for t in launch.traces)) if each.core is not None), None)


def _on_sparse_cores(requested: tuple[Target, ...]) -> tuple[Target, ...] | None:
    """The SparseCores of the configured targets: jax makes kernels for those of three generations."""
    chosen = [target for target in requested if target.backend == "tpu" and target.device in (None, *SPARSE)]
    sparse = dict.fromkeys(evolve(target, core="sparse") for target in chosen)
    return (tuple(sparse) or None) if requested else (Target("tpu", core="sparse"),)


# -- interpret mode ------------------------------------------------------------------------------------------------


def acts_like_hardware(launch: Launch, settings: Settings) -> bool:
    """Whether copies and products of a launch are asynchronous: compiled, or run by the interpreter of TPUs.

    `interpret=True` does each at once, and so does the interpreter of GPUs.
    """
    interpreted = launch.is_interpreted_call or (launch.interpret and not settings.target)
    return not interpreted or (launch.backend == "tpu" and launch.argument("interpret") != Const(True))


def interpreted_places(launch: Launch) -> frozenset[Span]:
    """Where a kernel does what it only does in interpret mode: under an open `if interpret:`."""
    compiled: set[Span] = set()
    interpreted: set[Span] = set()
    for trace in launch.traces:
        for event in trace.events:
            guards = () if isinstance(event, Capture) else event.guards
            only = any(guard.kind in ("if", "when") and _requests_interpreter(guard, launch) for guard in guards)
            (interpreted if only else compiled).add(event.site.span)
    return frozenset(interpreted - compiled)


def _requests_interpreter(guard: Guard, launch: Launch) -> bool:
    """Whether code under a guard only runs in interpret mode: by what is passed as `interpret`, or by its name."""
    condition = guard.condition
    if isinstance(condition, Sym) and (condition == launch.argument("interpret") or _is_name(condition.text)):
        return not guard.negated
    return _holds_interpreted(guard.site.node) is (not guard.negated)


def _is_name(dotted: str) -> bool:
    """Whether it is the name of a flag for interpret mode: `interpret`, `config.interpreted`."""
    name = dotted.rpartition(".")[2]
    return name.isidentifier() and "interpret" in name.lower()


def _holds_interpreted(test: nodes.Node) -> bool | None:
    """Whether a condition holds in interpret mode only (True), only without (False), or neither is known."""
    if isinstance(test, nodes.Name | nodes.Attribute):
        return True if _is_name(test.value if isinstance(test, nodes.Name) else test.attr.value) else None
    if isinstance(test, nodes.UnaryOperation) and isinstance(test.operator, nodes.Not):
        return _negated(_holds_interpreted(test.expression))
    if isinstance(test, nodes.Call) and len(test.args) == 1:  # `bool(interpret)`, `pl.when(interpret)`
        return _holds_interpreted(test.args[0].value)
    if isinstance(test, nodes.BooleanOperation):
        sides = [_holds_interpreted(side) for side in (test.left, test.right)]
        decisive = isinstance(test.operator, nodes.And)
        return next((side for side in sides if side is not None), None) if decisive else None
    if isinstance(test, nodes.Comparison) and len(test.comparisons) == 1:
        return _compared(test)
    return None


def _compared(test: nodes.Comparison) -> bool | None:
    """`interpret is not None`, `interpret == False`."""
    (target,) = test.comparisons
    held, other = _holds_interpreted(test.left), target.comparator
    constant = other.value if isinstance(other, nodes.Name) else ""
    if constant not in ("None", "True", "False"):
        return None
    same = isinstance(target.operator, nodes.Is | nodes.Equal)
    if not same and not isinstance(target.operator, nodes.IsNot | nodes.NotEqual):
        return None
    return held if same is (constant == "True") else _negated(held)


def _negated(held: bool | None) -> bool | None:
    return None if held is None else not held
