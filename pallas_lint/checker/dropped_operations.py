"""Severity of findings on dead code: jax removes operations with unused results before a backend compiles them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.compat.versions import parse
from pallas_lint.finding import Severity
from pallas_lint.kernels.model.known_names import PALLAS
from pallas_lint.records import evolve
from pallas_lint.syntax.unused_results import is_unused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pallas_lint.finding import Finding, Span
    from pallas_lint.kernels.model.trace import KernelTrace
    from pallas_lint.syntax.piece import Site

# `pallas_call` drops them since this release, measured by lowering an unused `jnp.sort` for TPU and Triton with jax
# 0.6.2, 0.9.2, 0.10.2, 0.11.2 and 0.12.0.1; its source has the call since 0.9.1. `plgpu.kernel` does not.
_DROPS = (0, 9, 1)
_COMPILING = ("PAL1", "PAL2")  # the families of what a compiler refuses or does slowly
_UNUSED = "not compiled as long as nothing uses the result"


def marked_unused(found: Iterable[Finding], trace: KernelTrace, versions: tuple[str, ...]) -> Iterator[Finding]:
    """The findings on a kernel; those on lowering and layout are infos where the operation is dropped before."""
    drops = trace.launch.api == f"{PALLAS}.pallas_call" and all(parse(version) >= _DROPS for version in versions)
    places: dict[Span, Site] | None = None
    for finding in found:
        if drops and finding.code.startswith(_COMPILING):
            places = _places(trace) if places is None else places
            site = places.get(finding.span)
            if site is not None and is_unused(site):
                yield evolve(finding, severity=Severity.INFO, message=f"{finding.message} ({_UNUSED})")
                continue
        yield finding


def _places(trace: KernelTrace) -> dict[Span, Site]:
    """Where the operations and accesses of a kernel are written, each place once."""
    sites = {event.site.key: event.site for event in trace.events}
    return {site.span: site for site in sites.values()}
