"""Pack what `measure/operations.py` wrote into compat's table of operations: `pack_operations.py FOLDER`.

FOLDER has one file a release, `0.9.2.jsonl`. Packed are the cases that fail, and of each release the devices that were
measured; what blocks cannot be copied of is left out: loads and stores report it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pack import version_key
from packed_outcomes import load, write_json

DATA = Path(__file__).resolve().parents[1] / "pallas_lint" / "compat" / "data" / "operations.json.gz"


def failures(path: Path) -> dict[str, dict[str, dict[str, str]]]:
    """By device, outcome and operation: the dtypes for which it ends so."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("]")]
    last = {(operation, dtype, device): found for operation, dtype, device, found in rows}
    uncopied = {(dtype, device) for (operation, dtype, device), found in last.items() if operation == "copy" != found}
    uncopied = {key for key in uncopied if last[("copy", *key)] != "ok"}
    packed: dict[str, Any] = {}
    for (operation, dtype, device), found in sorted(last.items()):
        outcomes = packed.setdefault(device, {})
        into = operation.partition(":")[2]
        if found in ("ok", "absent") or (dtype, device) in uncopied or (into, device) in uncopied:
            continue
        held = outcomes.setdefault(found, {})
        held[operation] = f"{held[operation]} {dtype}" if operation in held else dtype
    return packed


def add(path: Path, data: Path, version: str) -> None:
    """Add what was measured with one release to the table in the folder `data`; the same devices are replaced."""
    table = data / DATA.name
    held = load(table)
    packed = {**held, version: {**held.get(version, {}), **failures(path)}}
    write_json(table, {each: packed[each] for each in sorted(packed, key=version_key)})


def main() -> None:
    files = sorted(Path(sys.argv[1]).glob("*.jsonl"), key=lambda path: version_key(path.stem))
    packed = {path.stem: failures(path) for path in files}
    write_json(DATA, packed)


if __name__ == "__main__":
    main()
