"""The packed form of an outcome table: differences between columns of equal cells.

A case has a number for each column, which is a target with a measured version. Columns are nearly alike: one has
numbers of its own only where it differs from the column that it names as its base.
"""

from __future__ import annotations

import gzip
import json
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outcome_table import DTYPES, TARGETS, OutcomeTable

from pallas_lint.compat.cells import AS_BASE, FIRST_CELL, NOTHING, CellTable, parts_of, rows_of

_Column = list[int]


def write_json(path: Path, content: Any) -> None:
    """Write compressed JSON; the same content always gives the same bytes."""
    _write(path, json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode())


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def load(path: Path) -> Any:
    """A compressed JSON file of the data."""
    return json.loads(gzip.decompress(path.read_bytes()))


def read(data: Path, measured: list[str]) -> OutcomeTable:
    """What was packed; of the primitives, which have a file of their own, nothing."""
    content = load(data / "functions.json.gz")
    cells = CellTable(content, gzip.decompress((data / "cells.bin.gz").read_bytes()))
    table = OutcomeTable(measured, [parts_of(outcome) for outcome in content["outcomes"]])
    table.compiled = {target: list(indices) for target, indices in content["compiled"].items()}
    for name in content["functions"]:
        for variant, row in rows_of(content, name).items():
            by_target = table.table.setdefault((name, variant), {})
            for target, index in sorted(cells.columns):
                numbers = cells.find(row, target, index)
                if numbers is not None:
                    found = {dtype: number for dtype, number in zip(DTYPES, numbers, strict=True) if number}
                    by_target.setdefault(target, {})[index] = found
    return table


def replace_targets(work: Path, data: Path, prefix: str, add: Callable[[OutcomeTable, Path, str, int], None]) -> None:
    """Replace the packed data of the targets with this prefix, and of no others.

    `add` adds what was measured of them, given the folder `work`, the version and its index.
    """
    measured = json.loads((data / "versions.json").read_text(encoding="utf-8"))["measured"]
    functions = read(data, measured)
    for by_target in (functions.compiled, *functions.table.values()):
        for target in [target for target in by_target if target.startswith(prefix)]:
            del by_target[target]
    for index, version in enumerate(measured):
        add(functions, work, version, index)
    print("functions", write(functions, data))


def write(table: OutcomeTable, out: Path) -> int:
    """Write the table to `functions.json.gz` and `cells.bin.gz`; the number of its functions."""
    order = _by_frequency(table)
    renumbered = {number: place for place, number in enumerate(order)}
    keys = sorted(table.table)
    columns = {
        (target, index): _cells_of(table, keys, target, index, renumbered)
        for target in TARGETS
        for index in range(len(table.measured) - 1, -1, -1)
    }
    columns = {name: column for name, column in columns.items() if any(column)}
    cells = sorted({cell for column in columns.values() for cell in column if cell is not None})
    numbers = {None: NOTHING, **{cell: number for number, cell in enumerate(cells, FIRST_CELL)}}
    named, differences = _differences({name: [numbers[cell] for cell in of] for name, of in columns.items()})
    rows = {numbers: row for row, numbers in enumerate(dict.fromkeys(zip(*differences, strict=True)))}
    functions = _functions(keys, [rows[numbers] for numbers in zip(*differences, strict=True)])
    write_json(
        out / "functions.json.gz",
        {
            "dtypes": DTYPES,
            "compiled": table.compiled,
            "columns": named,
            "cells": len(cells),
            "outcomes": ["\t".join(part or "" for part in table.outcomes[number]) for number in order],
            "functions": functions,
        },
    )
    _write(out / "cells.bin.gz", b"".join(_packed(numbers) for numbers in (*cells, *rows)))
    return len(functions)


def _by_frequency(table: OutcomeTable) -> list[int]:
    """The outcome numbers that are in use, after that of no outcome."""
    by_version = [found for by_target in table.table.values() for found in by_target.values()]
    used = Counter(number for found in by_version for cells in found.values() for number in cells.values())
    return [0] + [number for number, _ in used.most_common() if number]


def _cells_of(
    table: OutcomeTable, keys: list[tuple[str, str]], target: str, index: int, renumbered: dict[int, int]
) -> list[tuple[int, ...] | None]:
    found = (table.table[key].get(target, {}).get(index) for key in keys)
    return [None if cells is None else tuple(renumbered[cells.get(dtype, 0)] for dtype in DTYPES) for cells in found]


def _differences(columns: dict[tuple[str, int], _Column]) -> tuple[list[tuple[str, int, int]], list[_Column]]:
    """Target, version and base of each column, with its numbers; the first has no base."""
    full = [*columns.values()]
    named, differences = [], []
    for place, ((target, index), column) in enumerate(columns.items()):
        base = min(range(place), key=lambda at: sum(map(int.__ne__, full[at], column)), default=0)
        named.append((target, index, base))
        before = full[base] if place else [AS_BASE] * len(column)
        differences.append([AS_BASE if here == there else here for here, there in zip(column, before, strict=True)])
    return named, differences


def _functions(keys: list[tuple[str, str]], rows: list[int]) -> dict[str, str]:
    """The variants of each function, and the row of each."""
    found: dict[str, str] = {}
    for (name, variant), row in zip(keys, rows, strict=True):
        before = f"{found[name]} " if name in found else ""
        found[name] = f"{before}{variant} {row}"
    return found


def _packed(numbers: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(numbers)}H", *numbers)
