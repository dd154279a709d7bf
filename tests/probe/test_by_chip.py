"""Functions that look up the chip are judged for each target by what they launch there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.probe.running import Probed

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow
V5E, V6E, V7X = TARGETS = ("tpu:v5e", "tpu:v6e", "tpu:tpu7x")
FLOATS = "f32[400000,128]"


def probed(worker: Worker, function: str, *targets: str, arguments: str = FLOATS) -> Probed:
    return Probed(worker, f"by_chip.py::{function}", arguments, targets=targets, stage="grid,lower")


def lowered(found: Probed) -> list[tuple[str, str | None]]:
    return [
        (launch.kernel, stage.target)
        for launch in found.launches
        for stage in launch.stages
        if stage.stage == "lower" and stage.ok
    ]


@pytest.mark.parametrize("targets", [TARGETS, (V6E, V7X, V5E)], ids=["later", "first"])
def test_refused_on_one_target(worker: Worker, targets: tuple[str, ...]) -> None:
    found = probed(worker, "refused_on_v6e", *targets)
    (finding,) = found.findings
    assert (finding.code, finding.device) == ("PAL901", "v6e")
    assert finding.message == "`refused_on_v6e` does not trace for tpu: not on this chip"
    assert lowered(found) == [("double_kernel", target) for target in targets if target != V6E]


def test_refused_on_each_target(worker: Worker) -> None:
    found = probed(worker, "nowhere", *TARGETS)
    assert [each.message for each in found.findings] == ["`nowhere` does not trace: not on generation 5"]


@pytest.mark.parametrize("targets", [TARGETS, (V6E, V7X, V5E)], ids=["first", "last"])
def test_no_kernel_on_one_target(worker: Worker, targets: tuple[str, ...]) -> None:
    found = probed(worker, "plain_on_v5e", *targets)
    assert not found.findings and not found.errors
    assert lowered(found) == [("double_kernel", target) for target in targets if target != V5E]


@pytest.mark.parametrize("function", ["large_on_v6e", "large_on_v6e_by_device"])
@pytest.mark.parametrize("targets", [TARGETS, (V6E, V7X, V5E)], ids=["later", "first"])
def test_blocks_that_only_one_target_gets(worker: Worker, function: str, targets: tuple[str, ...]) -> None:
    found = probed(worker, function, *targets)
    assert [(each.code, each.device) for each in found.findings] == [("PAL213", "v6e")]


def test_another_kernel_on_one_target(worker: Worker) -> None:
    found = probed(worker, "others_on_v6e", *TARGETS)
    assert lowered(found) == [("double_kernel", V5E), ("double_kernel", V7X), ("other_kernel", V6E)]
    assert not found.findings


def test_a_primitive_that_launches_where_it_is_lowered(worker: Worker) -> None:
    found = probed(worker, "primitive_of_its_own", V6E, arguments="f32[16,128]")
    assert lowered(found) == [("double_kernel", V6E)] and not found.findings and not found.errors
