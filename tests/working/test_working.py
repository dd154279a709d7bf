"""Working kernels, in every idiom: neither the rules nor the probe have an error or a warning for them.

A kernel is a function with a probe comment, beside a function `expected_…` that computes the same without Pallas. The
probe compares the two in interpret mode, lowers the kernel, and compiles it where the compiler is installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.finding import Severity
from pallas_lint.probe.client import Worker
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.session import Conditions, Session
from pallas_lint.probe.specs import comments_in
from pallas_lint.report.lines import Lines
from pallas_lint.testing import lint_text
from tests.probe.running import jax_version, run
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pallas_lint.finding import Finding

HERE = Path(__file__).parent
# The oldest jax that has what a file's kernels use, and the targets that its kernels are for.
FILES = {
    "plain.py": ((0, 4, 35), ("tpu:v5e",)),
    "bodies.py": ((0, 4, 35), ("tpu:v5e",)),
    "host_choices.py": ((0, 4, 35), ("tpu:v5e",)),
    "networks.py": ((0, 4, 35), ("tpu:v5e",)),
    "tpu.py": ((0, 8, 3), ("tpu:v5e",)),
    "tpu_copies.py": ((0, 8, 3), ("tpu:v5e",)),
    "tpu_grids.py": ((0, 8, 3), ("tpu:v5e",)),
    "tpu_meshes.py": ((0, 10, 2), ("tpu:v5e",)),
    "capture_programs.py": ((0, 10, 2), ("tpu:v5e",)),
    "triton.py": ((0, 8, 3), ("triton",)),
    "triton_blocks.py": ((0, 8, 3), ("triton",)),
    "mosaic_gpu.py": ((0, 10, 2), ("mosaic-gpu:sm90",)),
    "mosaic_gpu_slots.py": ((0, 12, 0), ("mosaic-gpu:sm90",)),
}
# What compilers of other devices do refuse, by the probe comment that tells the types: v4 multiplies no int8.
REFUSED = {("v4", "example.py:58")}


def judged(findings: list[Finding]) -> list[str]:
    return [f"{each.span} {each.code} {each.message}" for each in findings if each.severity is not Severity.INFO]


@pytest.mark.parametrize("file", FILES)
def test_the_text(file: str) -> None:
    """On the oldest release, on the newest, and for all of them together."""
    oldest = ".".join(map(str, FILES[file][0]))
    for versions in (None, oldest, f">={oldest}"):
        assert judged(lint_text((HERE / file).read_text(encoding="utf-8"), versions)) == [], versions


@pytest.mark.parametrize("file", [file for file in FILES if "tpu" in FILES[file][1][0]])
def test_the_text_for_every_tpu(file: str) -> None:
    """The compilers of most of them were not asked when the data were measured."""
    oldest = ".".join(map(str, FILES[file][0]))
    for device in ("v4", "v5p", "v6e", "tpu7x"):
        found = lint_text((HERE / file).read_text(encoding="utf-8"), oldest, f"tpu:{device}")
        assert [text for text in judged(found) if (device, text.split()[-1]) not in REFUSED] == [], device


@pytest.mark.slow
def test_a_captured_program() -> None:
    """Its launches are compiled as they stand in it, and run on the values that it has."""
    if jax_version() < FILES["capture_programs.py"][0]:
        pytest.skip("its kernels need a newer jax")
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    options = ("--target", "tpu:v5e", "--output-format", "json", "--")
    done = run("--capture", *options, python(), "capture_programs.py", cwd=HERE, env=devices)
    found = json.loads(done.stdout)
    assert (done.returncode, found["errors"], found["findings"]) == (0, [], []), done.stderr
    stages = [stage for launch in found["launches"] for stage in launch["stages"]]
    assert len(found["launches"]) == 10 and all(stage["ok"] for stage in stages if stage["stage"] == "lower")


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_the_probe(file: str) -> None:
    oldest, targets = FILES[file]
    if jax_version() < oldest:
        pytest.skip(f"its kernels need jax {oldest}")
    specs = list(comments_in((HERE / file).read_text(encoding="utf-8"), file))
    wrong = {}
    with Worker(python(), HERE) as worker:
        for spec in specs:
            reference = f"expected_{spec.function}"
            result = Session(worker, HERE, Conditions(targets, None, reference)).probe(spec)
            findings, errors = findings_of(result, HERE, Lines(HERE).line)
            lowered = [stage for launch in result.launches for stage in launch.stages if stage.stage == "lower"]
            complaints = judged(findings) + [str(error) for error in errors]
            if complaints or not lowered or not all(stage.ok for stage in lowered):
                wrong[spec.function] = complaints or "it was not lowered"
    assert wrong == {}
