"""Steps of a GPU's grid that store to one place at the same time are reported at the line of the store, others not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.probe.running import Probed

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow


def found(worker: Worker, function: str) -> list[tuple[str, str]]:
    probed = Probed(worker, f"gpu_grids.py::{function}", "f32[64,128]", targets=("triton",), stage="grid")
    assert probed.launches and not probed.errors
    return [(each.code, each.message) for each in probed.findings]


@pytest.mark.parametrize(
    ("function", "blocks"), [("all_steps_store_all", "4 grid points"), ("columns_store_one_block", "32 grid points")]
)
def test_steps_that_store_at_one_place(worker: Worker, function: str, blocks: str) -> None:
    [(code, message)] = found(worker, function)
    assert code == "PAL405"
    assert message.startswith(blocks)


@pytest.mark.parametrize(
    "function",
    [
        "columns_store_the_same",
        "the_last_step_stores",
        "the_last_step_stores_by_mask",
        "each_step_stores_its_rows",
    ],
)
def test_steps_that_do_not(worker: Worker, function: str) -> None:
    assert found(worker, function) == []
