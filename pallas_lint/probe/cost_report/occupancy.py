"""Occupancy of a GPU: resources that a kernel takes of a multiprocessor, and how many of its blocks fit there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.finding import Severity
from pallas_lint.probe.byte_sizes import format_bytes
from pallas_lint.records import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pallas_lint.finding import Finding
    from pallas_lint.probe.places import FindingBuilder
    from pallas_lint.probe.results import LaunchResult

# Of a multiprocessor of compute capability 9.0 and 10.0, from NVIDIA's CUDA C++ programming guide.
_REGISTERS, _WARPS, _BLOCKS, _SHARED = 65_536, 64, 32, 233_472
_PARTS = 4  # that have registers of their own: a warp's are in one
_OF_A_WARP, _UNIT = 32, 256  # threads; registers are given to warps in units of so many
_SYSTEM = 1024  # bytes of shared memory that each block takes besides
_MIN_OCCUPANCY = 0.125  # of the warps: with fewer, loads and stores alone wait for memory; with more, hardly (H200)


@frozen
class Occupancy:
    """Blocks and warps that run on a multiprocessor at a time, and what allows no more."""

    blocks: int
    warps: int
    limit: str

    @property
    def share(self) -> float:
        return self.warps / _WARPS


def occupancy(figures: Mapping[str, int]) -> Occupancy | None:
    """The occupancy from a compiled kernel's figures; None where they do not have it."""
    if not figures.keys() >= {"registers", "threads", "shared_bytes"} or not figures["threads"]:
        return None
    warps = -(-figures["threads"] // _OF_A_WARP)
    registers = -(-figures["registers"] * _OF_A_WARP // _UNIT) * _UNIT
    fit = {
        "registers": _REGISTERS // _PARTS // max(registers, 1) * _PARTS // warps,
        "shared memory": _SHARED // (figures["shared_bytes"] + _SYSTEM),
        "warps": _WARPS // warps,
        "blocks": _BLOCKS,
    }
    limit = min(fit, key=lambda each: fit[each])
    return Occupancy(fit[limit], fit[limit] * warps, limit)


def summary(figures: Mapping[str, int]) -> str:
    """ "194 registers a thread, none spilled; 8 of 64 warps at a time, limited by shared memory (144 KiB a block)"."""
    found = occupancy(figures)
    if found is None:
        return ""
    spilled = format_bytes(figures["spilled_bytes"]) if figures.get("spilled_bytes") else "none"
    return (
        f"{figures['registers']} registers a thread, {spilled} spilled; {found.warps} of {_WARPS} warps at a time, "
        f"limited by {found.limit} ({format_bytes(figures['shared_bytes'])} of shared memory a block)"
    )


def findings(launch: LaunchResult, about: FindingBuilder) -> Iterator[Finding]:
    """What a GPU's multiprocessors do not like, by target."""
    causes = launch.facts["causes"]
    for stage in launch.stages:
        found = occupancy(stage.figures)
        if found is None or causes is None:
            continue
        backend, device = (stage.target or "triton").partition(":")[::2]
        conditions = {"backend": backend.replace("-", "_"), "device": device or None}
        if stage.figures.get("spilled_bytes"):
            yield about.finding_at(
                (), "PAL820", Severity.INFO,
                f"{stage.figures['registers']} registers are too few: each thread moves "
                f"{format_bytes(stage.figures['spilled_bytes'])} to memory and back",
                "more warps (num_warps) share a block among more registers; smaller blocks need fewer",
                **conditions,
            )  # fmt: skip
        elif found.share <= _MIN_OCCUPANCY and not causes["products"]:
            yield about.finding_at(
                (), "PAL821", Severity.INFO,
                f"{found.warps} of {_WARPS} warps run at a time, limited by {found.limit}: too few to hide how long "
                "memory takes",
                "smaller blocks, or fewer stages, leave room for more blocks at a time",
                **conditions,
            )  # fmt: skip
