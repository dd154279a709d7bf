"""Measurements of the subcores of SparseCores, for the packed data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outcome_table import OutcomeTable, rows_of
from packed_outcomes import replace_targets

CORES = ("sc_vector", "sc_scalar")  # keys of what `measure/subcores.py` writes, and of the packed targets "tpu:CORE"


def pack(work: Path, out: Path) -> None:
    """Replace the packed data of SparseCores; what was measured of the other backends is not needed."""
    replace_targets(work, out, "tpu:sc_", add)


def add(functions: OutcomeTable, work: Path, version: str, index: int) -> None:
    """What was measured of SparseCores with this version, if anything."""
    lowered = work / f"lower-subcores-{version}.jsonl"
    if not lowered.exists():
        return
    for core in CORES:
        functions.has_compiled(f"tpu:{core}", index)
    for row in rows_of(lowered):
        key = (row["f"], row["v"])
        for core in CORES:
            outcome = row[core]
            if key in functions.table and outcome is not None and outcome[0] != "h":
                functions.add(key, f"tpu:{core}", index, row["d"], _short(outcome))


def _short(outcome: list[Any]) -> list[Any]:
    """The outcome without a message, other than that a primitive has no rule: it is of the shapes that were tried."""
    letter, message, primitive = outcome
    return outcome if message.startswith("Unimplemented primitive") else [letter, "", primitive]
