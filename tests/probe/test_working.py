"""Working kernels: whatever operands the probe made up, it has no error and no warning for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Severity
from tests.probe.running import Probed, X

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("of_positive_numbers", [X]),
        ("of_small_numbers", [X]),
        ("partial_block_in_no_result", ["f32[40,128]"]),
        ("partial_block_masked", ["f32[40,128]"]),
        ("other_blocks_from_the_alias", [X, "f32[16,128]"]),
        ("rows_by_index", ["i32[4]", X]),
        ("rows_by_index", ["i32[4]=[3,1,0,2]", X]),
        ("divided_by_a_length", ["i32[1]", "f32[8,128]"]),
        ("page_counted_from_one", ["i32[1]", X]),
        ("grid_from_an_argument", ["i32[]", X]),
        ("padding_cut_off", ["f32[8,128]"]),
        ("batched", ["f32[3,8,128]"]),
        ("copies_in_flight", [X]),
        ("pipeline", [X]),
        ("to_the_neighbour", [X]),
    ],
)
def test_working_kernels(worker: Worker, function: str, arguments: list[str]) -> None:
    probed = Probed(worker, f"working.py::{function}", *arguments, targets=("tpu:v5e",), stage="lower")
    assert probed.launches and not probed.errors
    assert [finding for finding in probed.findings if finding.severity is not Severity.INFO] == []
