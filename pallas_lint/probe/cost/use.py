"""Utilisation of a chip's units by a schedule, bundle by bundle.

`*-pre-delay_hlo-static-per-bundle-utilization.txt` names the units, gives how many slots of each a bundle has, and then
how many are used in each bundle of the schedule. Older releases of libtpu name fewer units, with bars between them;
from 0.0.51 on the products of the matrix unit (`MATMUL`, which was `MXU`) stand beside what loads its weights.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .listing import UnknownForm

# Names of units in the JSON report.
UNITS = {"MXU": "mxu", "MATMUL": "mxu", "XLU": "xlu", "VALU": "valu", "EUP": "eup", "VLOAD": "load", "VSTORE": "store"}
_PRODUCTS = {"MXU", "MATMUL"}
_SPILLS = "VSTORE:SPILL"


@dataclass
class UnitUse:
    """Slots of each unit that a bundle has, and those that each bundle uses. `spills`: stores that save registers."""

    slots: dict[str, int]
    used: list[dict[str, int]]
    spills: list[int]


def read(text: str, bundles: int) -> UnitUse | None:
    """The parsed text; None where there is none. Raises UnknownForm."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return None
    names = [name.strip() for name in re.split(r"[,|]", lines[1]) if name.strip()] if len(lines) > 3 else []
    rows = [[int(number) for number in re.findall(r"\d+", line)] for line in lines[2:] if not line.startswith("=")]
    if not _PRODUCTS & set(names) or len(rows) != bundles + 1 or any(len(row) != len(names) for row in rows):
        raise UnknownForm("a table of used slots that does not fit the schedule")
    slots = dict(zip(names, rows[0], strict=False))
    used, spills = [], []
    for row in rows[1:]:
        units = dict(zip(names, row, strict=False))
        used.append({unit: units[name] for name, unit in UNITS.items() if units.get(name)})
        spills.append(units.get(_SPILLS, 0))
    return UnitUse({unit: slots[name] for name, unit in UNITS.items() if slots.get(name)}, used, spills)
