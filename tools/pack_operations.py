"""Pack what `measure/operations.py` wrote into compat's table of operations.

Packed are the cases that fail, and of each release the devices that were measured. Of dtypes of which blocks cannot be
copied only "copy" is: loads and stores report them.
"""

from __future__ import annotations

import json
from pathlib import Path

from pack import version_key
from packed_outcomes import load, write_json

DATA = Path(__file__).resolve().parents[1] / "pallas_lint" / "compat" / "data" / "operations.json.gz"


_Failures = dict[str, dict[str, dict[str, str]]]


def failures(path: Path, earlier: _Failures | None = None) -> _Failures:
    """By device, outcome and operation: the dtypes for which it ends so.

    What only lowers ends as it did with an `earlier` release, which was run on a GPU.
    """
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")]
    last = {(operation, dtype, device): found for operation, dtype, device, found in rows}
    for case, found in last.items():
        if found == "lowers":
            last[case] = _ended(earlier or {}, *case)
    packed: _Failures = {}
    for (operation, dtype, device), found in sorted(last.items()):
        outcomes = packed.setdefault(device, {})
        into = operation.partition(":")[2]
        uncopied = [each for each in (dtype, into) if last.get(("copy", each, device), "ok") not in ("ok", "absent")]
        if found in ("ok", "absent") or (uncopied and operation != "copy"):
            continue
        held = outcomes.setdefault(found, {})
        held[operation] = f"{held[operation]} {dtype}" if operation in held else dtype
    return packed


def _ended(earlier: _Failures, operation: str, dtype: str, device: str) -> str:
    for found, held in earlier.get(device, {}).items():
        if found != "lower" and dtype in held.get(operation, "").split():
            return found
    return "ok"


def add(path: Path, data: Path, version: str) -> None:
    """Add what was measured with one release to the table in the folder `data`; the same devices are replaced."""
    table = data / DATA.name
    held = load(table)
    before = [each for each in held if version_key(each) < version_key(version)]
    earlier = held[max(before, key=version_key)] if before else None
    packed = {**held, version: {**held.get(version, {}), **failures(path, earlier)}}
    write_json(table, {each: packed[each] for each in sorted(packed, key=version_key)})
