"""What was measured of the subcores of SparseCores, for the packed data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import unpack
from outcome_table import OutcomeTable, rows_of, write

CORES = ("sc_vector", "sc_scalar")  # keys of what `measure/subcores.py` writes, and of the packed targets "tpu:CORE"


def pack(work: Path, out: Path) -> None:
    """Replace what the packed data say of SparseCores; what was measured of the other backends is not needed."""
    measured = json.loads((out / "versions.json").read_text(encoding="utf-8"))["measured"]
    functions = unpack.functions(out, measured)
    for core in CORES:
        functions.compiled.pop(f"tpu:{core}", None)
        for by_target in functions.table.values():
            by_target.pop(f"tpu:{core}", None)
    for index, version in enumerate(measured):
        add(functions, work, version, index)
    content = functions.content()
    del content["primitives"]
    write(out / "functions.json.gz", content)
    print("functions", len(content["functions"]), "bytes", (out / "functions.json.gz").stat().st_size)


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
