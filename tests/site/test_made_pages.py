"""Pages that are made from the program have what it knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def page(name: str) -> str:
    program = f"import site_pages; print(site_pages.generators()[{name!r}]())"
    return subprocess.run([sys.executable, "-c", program], cwd=TOOLS, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_the_page_of_chips_has_every_chip_and_nothing_left_to_fill_in() -> None:
    from pallas_lint.compat.chips import CHIPS, SPARSE

    made = page("chips.md")
    assert "<!--" not in made
    memories, sparse = made.partition("## SparseCores")[::2]
    assert all(f"| {name} |" in memories for name in CHIPS)
    assert all(f"| {name} |" in sparse for name in SPARSE)
    assert "| v6e | 2 | 16 a core | 256 KiB | 4 MiB | (8,); (16,) or (2, 8); (32,) or (4, 8) |" in sparse
    assert "`jnp.argmax`" in sparse
