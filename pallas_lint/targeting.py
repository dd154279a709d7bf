"""What a launch is judged for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.config.targets import Target
from pallas_lint.kernels.launches.backend import STRONG

if TYPE_CHECKING:
    from pallas_lint.config.settings import Settings
    from pallas_lint.kernels.model.launch import Launch


def targets_of(launch: Launch, settings: Settings) -> tuple[Target, ...] | None:
    """What a launch is judged for: its own backend where the code says it, else the targets asked for.

    Empty where nothing tells the backend. None where no backend is in question: pinned to one that nobody asked for,
    on SparseCore (for which nothing is measured), or in interpret mode, where no backend compiles it.
    """
    sparse = any(around.core is not None for around in (launch, *(trace.launch for trace in launch.traces)))
    # A call that is launch.is_tried says nothing of what compilers do with such shapes, whatever they are asked for.
    if sparse or launch.is_tried or (launch.interpret and not settings.target):
        return None
    if launch.backend is not None and (launch.evidence in STRONG or not settings.target):
        own = tuple(target for target in settings.target if target.backend == launch.backend)
        return (own or None) if settings.target else (Target(launch.backend),)
    return settings.target
