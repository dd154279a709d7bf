"""Device ids in each of their ways, and semaphores that outlive a launch, as jax's interpreter has them, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interleaving.test_probing import probe, why_not, worker

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow
__all__ = ["worker"]

X = "f32[48,128]"
RIGHT = ["logical", "tuple", "dict", "dict of one axis", "joint axes", "joint axes, turned"]
ASTRAY = ["logical, not there", "tuple, not there", "dict, not there"]


@pytest.mark.parametrize("form", RIGHT)
def test_which_device_is_addressed(worker: Worker, form: str) -> None:
    result, found = probe(worker, "addresses.py::post", X, f"form={form!r}", stage="interpret")
    assert found == []
    [launch] = result.launches
    assert launch.facts["axes"] == {"y": 2, "x": 3}
    assert {stage.stage: stage.ok for stage in launch.stages if stage.stage in ("verify", "interpret")} == {
        "verify": True,
        "interpret": True,
    }


@pytest.mark.parametrize("form", ASTRAY)
def test_a_device_that_is_not_there(worker: Worker, form: str) -> None:
    _, found = probe(worker, "addresses.py::post", X, f"form={form!r}", stage="verify")
    assert {finding.code for finding in found} == {"PAL910", "PAL912"}


def test_another_device_than_the_waiting_one(worker: Worker) -> None:
    _, found = probe(worker, "addresses.py::post", X, "form='another'", stage="verify")
    assert {finding.code for finding in found} == {"PAL910"}


@pytest.mark.nightly
def test_a_number_on_one_axis(worker: Worker) -> None:
    _, found = probe(worker, "addresses.py::along_one_axis", X, "number=3", stage="interpret")
    assert found == []
    _, found = probe(worker, "addresses.py::along_one_axis", X, "number=6", stage="verify")
    assert {finding.code for finding in found} == {"PAL910", "PAL912"}


@pytest.mark.parametrize("awaited", [True, False])
def test_semaphores_that_outlive_a_launch_are_reported(worker: Worker, awaited: bool) -> None:
    why = why_not(worker, "addresses.py::split", X, f"awaited={awaited}")
    assert why.startswith("not modelled: `")
    assert "a semaphore that outlives the launch (line" in why
