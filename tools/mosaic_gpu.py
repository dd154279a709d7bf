"""Measurements of Mosaic GPU, in both of its lowering semantics, for the packed data."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from outcome_table import CALLS, OutcomeTable, dtype_of, rows_of, unimplemented
from packed_outcomes import replace_targets

# Backend in what `functions.py lower` writes → the semantics.
_SEMANTICS = {"mosaic_gpu": "warpgroup", "mosaic_gpu_lane": "lane"}
_HOPE = {"k": 0, "-": 1}  # of what came to this, the rest has none
# Refusals by dtype, whatever the layout.
_BY_DTYPE = re.compile(
    r"Pointwise operations on \d+-bit types are unsupported|unsupported operand type\(s\) for %"
    r"|Hardware has no support for converting"
)
_STRIDES = "Strides are not supported"
_NO_LAYOUTS = re.compile(r"No layout inference rule defined for %\d+ = (math\.(\w+))")


def pack(work: Path, out: Path) -> None:
    """Replace the packed data of Mosaic GPU; what was measured of the other backends is not needed."""
    replace_targets(work, out, "mosaic_gpu", add)


def add(functions: OutcomeTable, work: Path, version: str, index: int) -> None:
    """What was measured of Mosaic GPU with this version, if anything."""
    lowered = work / f"lower-mosaic_gpu-{version}.jsonl"
    if lowered.exists():
        functions.has_compiled("mosaic_gpu", index)
        registries = json.loads((work / "reg" / f"{version}.json").read_text())["registries"]
        _add(functions, lowered, index, registries)


def _add(functions: OutcomeTable, path: Path, index: int, registries: dict[str, list[str]]) -> None:
    """What one layout of one tile came to, in either semantics.

    What works there works. Of what fails two things are certain: a dtype that is refused in any layout, and an
    operation that has no rule, or none with strides, where no other form of the call with that dtype, of which nothing
    is known, does without it. In one target of its own for each semantics, and in one for both: works in either, or
    certainly in none.
    """
    rows = [row for row in rows_of(path) if "modes" not in row]
    found: dict[str, list[list[Any] | None]] = {}
    for backend, semantics in _SEMANTICS.items():
        rules = {*registries.get(f"mosaic_gpu.{semantics}", []), *CALLS}
        results = [_certain([row["s"], "", None] if "s" in row else row.get(backend)) for row in rows]
        hopes: dict[tuple[str, str], list[set[str]]] = {}
        for row, result in zip(rows, results, strict=True):
            if result is not None and result[0] == "-" and rules.issuperset(row.get("p", ())):
                hopes.setdefault((row["f"], dtype_of(row)), []).append({*row.get("p", ())})
        for at, (row, result) in enumerate(zip(rows, results, strict=True)):
            missing = result[2] if result is not None and result[0] == "l" else None
            others = hopes.get((row["f"], dtype_of(row)), ())
            if missing is not None and any(missing not in other for other in others):
                results[at] = ["-", "", None]
        found[semantics] = results
    for row, *outcomes in zip(rows, *found.values(), strict=True):
        key, dtype = (row["f"], row["v"]), dtype_of(row)
        known = {semantics: outcome for semantics, outcome in zip(found, outcomes, strict=True) if outcome is not None}
        for semantics, outcome in known.items():
            functions.add(key, f"mosaic_gpu:{semantics}", index, dtype, outcome)
        if known:
            best = min(known.values(), key=lambda outcome: _HOPE.get(outcome[0], 2))
            functions.add(key, "mosaic_gpu", index, dtype, best)


def _certain(result: list[Any] | None) -> list[Any] | None:
    """The outcome, where it does not hang on the layout."""
    if result is None or result[0] in "kus":
        return result and result[:3]
    primitive = unimplemented(result[1])
    if primitive is not None:
        return ["l", result[1], primitive]
    if _STRIDES in result[1]:
        return ["l", result[1], "slice with strides"]  # no row has this among its primitives
    without = _NO_LAYOUTS.search(result[1])
    if without is not None:
        return ["l", f"`{without[1]}` has no inference rule", without[2]]
    if _BY_DTYPE.search(result[1]):
        return result[:3]
    return ["-", "", None]
