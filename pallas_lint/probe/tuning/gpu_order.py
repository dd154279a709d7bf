"""The predicted order of a Triton kernel's configurations on an H100: no times, only which is faster.

Blocks that run on a multiprocessor at a time share its units; a block alone waits for memory, for barriers and for its
own instructions. What takes longer counts, in rounds of blocks. Constants were fitted to 309 launches on an H100
(products of matrices, gated linear units, attention); docs/speed.md has how well the order of others agrees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pallas_lint.probe.cost_report.occupancy import occupancy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pallas_lint.probe.protocol import BlockWork, WarpWork

_MULTIPROCESSORS = 132
_ISSUED = 4  # instructions a clock, one in each part of a multiprocessor
_PARTS = 4
# Clocks, fitted.
_LINE = 1.23  # for 128 bytes from or to global memory
_LATENCY = 583  # until the first byte is there
_BEGIN = 1270  # of a block
_SPILLED = 1 / 133  # for each byte that a thread spills
_WGMMA, _MMA, _SHARED = 0.72, 0.71, 1.1  # for each of what is counted in PTX
_BARRIER, _SHUFFLE = 42, 12
_APART = 2.07  # between instructions of one warp
# How much of what runs beside each other is hidden: the power of a mean of which 1 is the sum.
_BESIDE, _ONE_AHEAD = 4, 1.7


def clocks(figures: Mapping[str, int], work: BlockWork) -> float | None:
    """Predicted clocks, to compare configurations of one kernel on the same arrays; None where figures are missing."""
    resident = occupancy(figures)
    if resident is None or not resident.blocks:
        return None
    warps = resident.warps // resident.blocks
    once, turn, turns = work["once"], work["turn"], work["turns"]
    spilled = figures.get("spilled_bytes", 0) * figures["threads"] * turns * _SPILLED
    lines = (work["lines"] + work["turn_lines"] * turns) * _LINE
    units = zip(_units(once, warps), _units(turn, warps), strict=True)
    busy = _larger(lines, *(begun + turns * repeated for begun, repeated in units)) + spilled
    alone = _BEGIN + _alone(once, warps) + work["lines"] * _LINE + turns * _turn(work, warps) + spilled
    blocks = -(-work["blocks"] // _MULTIPROCESSORS)
    rounds, rest = divmod(blocks, resident.blocks)
    last = _larger(rest * busy, alone) if rest else 0
    return rounds * _larger(resident.blocks * busy, alone) + last


def _turn(work: BlockWork, warps: int) -> float:
    """Clocks of a turn of the loop of a block alone. Blocks that are fetched ahead of time are waited for less."""
    turn, ahead = work["turn"], work["stages"] - 1
    fetched = _LATENCY + work["turn_lines"] * _LINE
    if not turn["copies"] or ahead < 1:
        return fetched + _alone(turn, warps)
    if ahead == 1:
        return _larger(fetched, _alone(turn, warps), power=_ONE_AHEAD)
    products = _PARTS * turn["wgmma"] * _WGMMA  # of one turn run while the next begins
    return _larger(fetched / ahead, _alone(turn, warps) - products, products)


def _units(work: WarpWork, warps: int) -> tuple[float, float, float]:
    """Clocks of a multiprocessor for a block of so many warps: tensor cores, shared memory, issuing."""
    tensor = work["wgmma"] * _WGMMA + work["mma"] * _MMA
    return warps * tensor, warps * work["shared"] * _SHARED, warps * (work["issued"] / _ISSUED + work["special"])


def _alone(work: WarpWork, warps: int) -> float:
    """Clocks of one warp when nothing else runs."""
    return (
        work["issued"] * _APART
        + work["barriers"] * _BARRIER * max(warps / _PARTS, 1)
        + work["shuffles"] * _SHUFFLE
        + _PARTS * (work["wgmma"] * _WGMMA + work["mma"] * _MMA)
    )


def _larger(*clocks: float, power: float = _BESIDE) -> float:
    return float(sum(each**power for each in clocks) ** (1 / power))
