"""The stage that runs kernels on the device that is there: with a stand-in, since test machines have none."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.probe.running import HERE, Probed, X
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow


def stand_in(how: str) -> list[Any]:
    command = [python(), "-m", "tests.probe.stand_in", "good", how]
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.nightly
def test_results_that_are_the_interpreters() -> None:
    reported = stand_in("right")[0]
    assert reported["ok"] is True
    assert reported["figures"] == {"run_nanoseconds": 2500}
    assert "2.5 \u00b5s, median of 20 runs" in reported["detail"]
    assert reported["detail"].endswith("; predicted 2.25 \u00b5s (2 to 2.75)")


def test_results_that_are_not() -> None:
    reported = stand_in("wrong")[0]
    assert reported["ok"] is False
    assert reported["problems"][0]["kind"] == "mismatch"


def test_results_that_differ_from_the_reference() -> None:
    [reported] = stand_in("right")[-1]
    assert reported["device"] == "cpu"
    assert reported["message"] == "4 of 4 values of result 0 differ, at [0] 1.0 instead of 0.0"


@pytest.mark.nightly
def test_a_failing_device_is_not_used_again() -> None:
    first, second, _ = stand_in("broken")
    assert first["problems"][0]["message"] == "INTERNAL: the device is gone"
    assert second["ok"] is None
    assert second["detail"].endswith("left the device unusable")


def test_a_machine_without_a_device(worker: Worker) -> None:
    probed = Probed(worker, "good", X, real=True, stage="trace")
    [stage] = [stage for launch in probed.launches for stage in launch.stages if stage.stage == "run"]
    assert stage.ok is None
    assert stage.detail is not None
    assert stage.detail.startswith("jax finds no")
    assert probed.findings == []
