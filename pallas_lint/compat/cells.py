"""Outcome numbers of the measured cases, packed as differences between columns: `tools/packed_outcomes.py`.

A column is a target with a measured version, and a row is a case: one way of calling a function. Nothing is parsed
before it is looked up.
"""

from __future__ import annotations

import struct
from typing import Any

AS_BASE, NOTHING, FIRST_CELL = 0, 1, 2  # numbers of a case in a column: as in its base, not measured, and cells


class CellTable:
    """Outcome numbers by dtype, of each case in each column."""

    def __init__(self, content: dict[str, Any], packed: bytes) -> None:
        columns: list[tuple[str, int, int]] = content["columns"]
        self.columns = {(target, index): place for place, (target, index, _) in enumerate(columns)}
        self._bases = [base for _, _, base in columns]
        self._packed = packed
        self._cell = struct.Struct(f"<{len(content['dtypes'])}H")
        self._row = struct.Struct(f"<{len(columns)}H")
        self._rows_at = content["cells"] * self._cell.size

    def find(self, row: int, target: str, index: int) -> tuple[int, ...] | None:
        """The outcome number of each dtype; None if nothing was measured there."""
        column = self.columns.get((target, index))
        if column is None:
            return None
        numbers = self._row.unpack_from(self._packed, self._rows_at + row * self._row.size)
        while numbers[column] == AS_BASE:
            column = self._bases[column]
        number = numbers[column]
        if number == NOTHING:
            return None
        return self._cell.unpack_from(self._packed, (number - FIRST_CELL) * self._cell.size)


def rows_of(content: dict[str, Any], name: str) -> dict[str, int]:
    """The row of each variant of a function; those with the same outcomes everywhere have one row."""
    words = content["functions"][name].split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def parts_of(outcome: str) -> tuple[str, str | None, str | None]:
    """The letter, the primitive to blame and the message of an outcome."""
    letter, primitive, message = outcome.split("\t")
    return letter, primitive or None, message or None
