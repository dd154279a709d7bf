"""Amounts of memory as text: one format for the linter, its reports and the probe's worker, which takes this along."""

from __future__ import annotations


def format_bytes(count: float) -> str:
    """ "8 bytes", "12 KiB", "33.5 MiB", "18.08 MiB", "2 GiB": the largest unit of which there is one, two decimals."""
    if count < 1024:
        return _number(count) + (" byte" if count == 1 else " bytes")
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if round(count, 2) < 1024:
            return f"{_number(count)} {unit}"
    return f"{_number(count / 1024)} TiB"


def format_exactly(count: int) -> str:
    """ "33.5 MiB", "512.5 KiB", "524,292 bytes": the largest unit in which two decimals lose nothing, for sums."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size and 100 * count % size == 0:
            return f"{_number(count / size)} {unit}"
    return f"{count:,} byte{'' if count == 1 else 's'}"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
