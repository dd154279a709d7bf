"""Verdicts of lowering rules: the backends and the checked jax versions in which something fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint import compat
from pallas_lint.checker.targeting import sparse_core
from pallas_lint.finding import Severity
from pallas_lint.kernels.model.compiler_params import compiler_param
from pallas_lint.kernels.model.values import External
from pallas_lint.records import frozen
from pallas_lint.text.wording import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pallas_lint.checker.context import Context
    from pallas_lint.finding import Finding
    from pallas_lint.kernels.model.trace import Op
    from pallas_lint.syntax.piece import Site

    # (backend, device, version); of Mosaic GPU what is measured hangs on the lowering semantics, not on the device.
    Fails = Callable[[str, "str | None", str], bool]

SEMANTICS = ("lane", "warpgroup")  # of Mosaic GPU
SUBCORES = {"sc_vector": "vector subcore of a SparseCore", "sc_scalar": "scalar subcore of a SparseCore"}
LAST_OF_LANE = "0.10.2"  # the last release in which kernels have these where they choose none
BACKENDS: dict[str, str] = {"tpu": "TPU", "triton": "Triton", "mosaic_gpu": "Mosaic GPU"}


@frozen
class Failure:
    """The backends and jax versions where something fails; several `backends` only for an unknown one."""

    backends: tuple[str, ...]
    versions: tuple[str, ...]  # the checked versions in which it fails
    everywhere: bool  # in every known version, so that it does not matter which one is meant
    severity: Severity  # error, or info where it would fail on some of the possible backends
    device: str | None = None  # that `fails` was called with, of the last version

    @property
    def only_in(self) -> tuple[str, ...]:
        """The versions in which it fails; empty where it fails in all."""
        return () if self.everywhere else self.versions

    @property
    def place(self) -> str:
        """ "Triton", "TPU and Mosaic GPU"."""
        if self.device in SUBCORES:
            return f"the {SUBCORES[self.device]}"
        return listed([BACKENDS[backend] for backend in self.backends])

    @property
    def jax(self) -> str:
        """ "jax 0.7.2", "jax 0.4.35 to 0.7.2", "any jax version", "jax 0.12.0.1 with Warpgroup semantics"."""
        first, last = self.versions[0], self.versions[-1]
        described = "any jax version" if self.everywhere else f"jax {first}" + (f" to {last}" if first != last else "")
        return described if self.device not in SEMANTICS else f"{described} with {self.device.capitalize()} semantics"


def failure(context: Context, fails: Fails) -> Failure | None:
    """The result of `fails` for the target at hand, or for every backend where there is none.

    With no target known it is an error only if it fails on all three backends; else an info, and none at all
    where only Mosaic GPU fails, for which few kernels are meant.
    """
    target = context.target
    if target is not None:
        backend = target.backend

        def failing_here(version: str) -> bool:
            return fails(backend, _device(context, version), version)

        versions = context.failing(failing_here)
        if not versions:
            return None
        always = context.everywhere(failing_here)
        device = _device(context, versions[-1])
        if device in SEMANTICS and all(fails(backend, other, version) for other in SEMANTICS for version in versions):
            device = None  # the semantics do not matter
        return Failure((backend,), versions, always, Severity.ERROR, device)

    def failing(version: str) -> list[str]:
        return [backend for backend in BACKENDS if fails(backend, None, version)]

    common = context.failing(lambda version: len(failing(version)) == len(BACKENDS))
    if common:
        always = context.everywhere(lambda version: len(failing(version)) == len(BACKENDS))
        return Failure(tuple(BACKENDS), common, always, Severity.ERROR)
    versions = context.failing(lambda version: bool({"tpu", "triton"} & set(failing(version))))
    if not versions:
        return None
    backends = {backend for version in versions for backend in failing(version)}
    ordered = tuple(backend for backend in BACKENDS if backend in backends)
    return Failure(ordered, versions, everywhere=False, severity=Severity.INFO)


def _device(context: Context, version: str) -> str | None:
    """The target's device; of SparseCores the subcore, of Mosaic GPU the lowering semantics, that the launch has."""
    assert context.target is not None
    if context.target.core == "sparse" and context.launch is not None:
        return sparse_core(context.launch)
    if context.target.backend != "mosaic_gpu" or context.launch is None:
        return context.target.device
    chosen = compiler_param(context.launch, "lowering_semantics")
    if chosen is None:
        return "lane" if up_to(LAST_OF_LANE, version) else "warpgroup"
    name = chosen.name.rpartition(".")[2].lower() if isinstance(chosen, External) else None
    return name if name in SEMANTICS else None


def lowers(primitive: str, backend: str, version: str, device: str | None = None) -> bool:
    """Whether the backend has a rule for the primitive; True where nothing is known.

    Of Mosaic GPU in the semantics that `device` names, else in any; of TPUs on the subcore that it names.
    """
    every = SEMANTICS if backend == "mosaic_gpu" else (None,)
    cores = (device,) if device in (*SEMANTICS, *SUBCORES) else every
    known = [compat.primitive_supported(primitive, backend, version, core) for core in cores]
    return any(known) or all(answer is None for answer in known)


def up_to(last: str, version: str) -> bool:
    """Whether the version is `last` or older."""
    known = compat.known_versions()
    return known.index(compat.nearest(version)) <= known.index(compat.nearest(last))


def ends_with(last: str | None) -> Callable[[str], bool]:
    """What fails up to this release; up to today where there is none."""
    return lambda version: last is None or up_to(last, version)


@frozen
class Refusal:
    """A call that a backend refuses: the message, and what to write instead."""

    what: str
    instead: str
    last: str | None = None  # the last release that refuses it; None: all do
    severity: Severity = Severity.ERROR


def first_refused(
    refusals: Iterable[Refusal], where: Site, context: Context, op: Op | None = None
) -> Iterator[Finding]:
    """A finding for the first of the refusals that a checked version has; none without one."""
    for refusal in refusals:
        failing = context.failing(ends_with(refusal.last))
        if failing:
            only_in = () if refusal.last is None else failing
            yield context.finding(
                where, refusal.what, help=refusal.instead, severity=refusal.severity, op=op, only_in=only_in
            )
            return


def within(version: str, since: str, until: str | None = None) -> bool:
    """Whether a version lies between two that were measured alike, these included; no end: up to the newest known."""
    here = compat.parse(version)
    return compat.parse(since) <= here and (until is None or here <= compat.parse(until))
