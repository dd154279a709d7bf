"""What is around a kernel and does not excuse it: meshes, devices, values that were made up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.probe.running import HERE, Probed, jax_version, run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow
TPU = ("tpu:v5e",)
TWO = ("f32[16,128]", "bool[16,128]")


def line_of(mark: str) -> int:
    lines = (HERE / "around.py").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


@pytest.mark.parametrize(
    ("function", "arguments", "stage", "finding"),
    [
        ("sums_on_devices", ["f32[32,128]"], "lower", ("PAL101", "error", "sums on several devices")),
        ("made_elsewhere", ["f32[16,128]"], "trace", ("PAL901", "error", "made elsewhere")),
        ("odd_rows", ["f32[24,128]"], "trace", ("PAL901", "warning", "odd rows")),
        ("of_gpus", ["f32[8,128]"], "trace", ("PAL901", "error", "of GPUs")),
        ("stores", [*TWO], "interpret", ("PAL412", "error", "stores")),
        ("adds", [*TWO], "interpret", ("PAL907", "error", "adds")),
    ],
)
def test_what_is_wrong_whatever_is_around(
    worker: Worker, function: str, arguments: list[str], stage: str, finding: tuple[str, str, str]
) -> None:
    probed = Probed(worker, f"around.py::{function}", *arguments, targets=TPU, stage=stage)
    code, severity, mark = finding
    reported = [(each.code, each.severity.value, each.span.start.line) for each in probed.findings]
    assert reported == [(code, severity, line_of(mark))], probed.findings


def test_types_that_stand_for_arrays(worker: Worker) -> None:
    if jax_version() < (0, 10, 2):
        pytest.skip("this jax has no such types for kernels")
    probed = Probed(worker, "pairs.py::of_pairs", "f32[8,128]", "f32[8,128]", targets=TPU, stage="interpret")
    assert (probed.codes, probed.errors) == ([], [])
    (launch,) = probed.launches
    reported = {stage.detail for stage in launch.stages if stage.ok is None}
    assert reported == {"not judged: jax makes another launch of it, which takes arrays"}


def test_the_users_own_assertion_is_quoted(worker: Worker) -> None:
    [finding] = Probed(worker, "around.py::odd_rows", "f32[24,128]", stage="trace").findings
    assert finding.message == "`odd_rows` does not trace: `assert x.shape[0] % 16 == 0` fails"


def test_numbers_that_are_none_on_every_operand(worker: Worker) -> None:
    [finding] = Probed(worker, "around.py::roots", "f32[8,128]", stage="interpret").findings
    assert (finding.code, finding.severity.value) == ("PAL906", "warning")


@pytest.mark.parametrize(
    ("function", "more", "code"), [("stores", ["masked=True"], "PAL412"), ("leaves", [], "PAL907")]
)
def test_what_depends_on_a_mask_that_was_made_up(worker: Worker, function: str, more: list[str], code: str) -> None:
    [finding] = Probed(worker, f"around.py::{function}", *TWO, *more, stage="interpret").findings
    assert (finding.code, finding.severity.value) == (code, "info")
    assert finding.help is not None and finding.help.startswith("on random values of `mask_ref`: ")


def test_what_one_device_refuses_is_tried_on_another(worker: Worker) -> None:
    probed = Probed(worker, "around.py::of_gpus", "f32[8,128]", stage="lower")
    assert (probed.codes, len(probed.launches)) == ([], 1)


def test_a_device_that_is_missing_here_is_no_fault(worker: Worker) -> None:
    [finding] = Probed(worker, "around.py::needs_rocm", "f32[8,128]", targets=TPU, stage="trace").findings
    assert (finding.code, finding.severity.value) == ("PAL901", "info")


@pytest.mark.nightly
def test_a_captured_program() -> None:
    """Its faults are found on the values, in the meshes and with the settings that it has; it runs as without."""
    options = ("--target", "tpu:v5e", "--output-format", "json", "--")
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    done = run("--capture", *options, python(), "around.py", cwd=HERE, env=devices)
    assert "the end" in done.stderr
    found = [(each["code"], each["severity"], each["start"]["line"]) for each in json.loads(done.stdout)["findings"]]
    expected = {
        ("PAL101", "error", line_of("sums on several devices")),
        ("PAL907", "error", line_of("adds")),
        ("PAL412", "error", line_of("stores")),
        ("PAL105", "error", line_of("launch")),
    }
    assert expected < set(found)
    assert [code for code, _, _ in sorted(set(found) - expected)] == ["PAL906"]
