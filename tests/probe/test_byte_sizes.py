"""Amounts of memory, as every report and message writes them."""

from __future__ import annotations

import pytest

from pallas_lint.probe.byte_sizes import format_bytes, format_exactly


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"), (1, "1 byte"), (8, "8 bytes"), (341.25, "341.25 bytes"), (1023, "1023 bytes"),
        (1024, "1 KiB"), (12 << 10, "12 KiB"), (2949, "2.88 KiB"), (1_048_570, "1023.99 KiB"),
        (1_048_575, "1 MiB"), (16 << 20, "16 MiB"), ((67 << 20) // 2, "33.5 MiB"), (18_958_254, "18.08 MiB"),
        (3 << 29, "1.5 GiB"), (5 << 40, "5 TiB"), (5 << 50, "5120 TiB"),
    ],
)  # fmt: skip
def test_the_largest_unit_and_two_decimals(count: float, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1 byte"), (1000, "1,000 bytes"), (1024, "1 KiB"), (524_292, "524,292 bytes"), (524_800, "512.5 KiB"),
     ((67 << 20) // 2, "33.5 MiB"), ((16 << 20) + 4096, "16388 KiB"), (3 << 29, "1.5 GiB")],
)  # fmt: skip
def test_amounts_that_are_added_up(count: int, text: str) -> None:
    assert format_exactly(count) == text
