"""Working kernels, in every idiom: neither the rules nor the probe have an error or a warning for them.

A kernel is a function with a probe comment, beside a function `expected_…` that computes the same without Pallas, or
`case_…` where it is right for some operands only. The probe compares the two in interpret mode, lowers the kernel, and
compiles it where the compiler is installed. A captured program and a captured run of pytest launch all of them.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pallas_lint.finding import Severity
from pallas_lint.probe.client import Worker
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.session import Conditions, Session
from pallas_lint.report.lines import Lines
from pallas_lint.testing import lint_text
from tests.probe import running
from tests.probe.running import jax_version
from tests.rules.interpreted import python
from tests.working.files import AROUND, FILES, HERE, specs_of, text_of

if TYPE_CHECKING:
    from pallas_lint.finding import Finding

# What compilers of other devices do refuse, by the probe comment that tells the types: v4 multiplies no int8.
REFUSED = {("v4", "example.py:58")}
# Accused although they work, by the function that the probe was asked for: to be taken out when that is mended.
ACCUSED = {
    "argument_that_the_caller_has_sharded": "F15",
    "argument_sharded_over_two_explicit_axes": "F15",
    "sharded_and_replicated_arguments": "F15",
    "passed_on_over_an_explicit_axis": "F15",
    "copy_that_ends_in_the_next_launch": "F3b",
    "work_while_a_copy_is_under_way": "F3b",
    "fetched_from_the_host": "F5",
    "scalars_copied_out": "F4",
    "counts_of_all_steps_copied_out": "F4",
    "padding_slots_of_length_zero": "F6",
    "nothing_to_move": "F6",
    "softmax_gradient_from_residuals": "F11",
    "normalised_with_saved_moments": "F11",
    "inverse_of_a_unit_triangular_matrix": "F11",
    "orthogonal_factor_of_a_scaled_matrix": "F11",
    "logarithm_of_what_callers_keep_small": "F11",
    "gradient_from_scores_and_their_sums": "F11",
    "store_behind_a_mask_of_the_callers": "F12",
    "asserts_that_the_device_is_a_tpu": "F13",
    "raises_on_other_backends": "F13",
    "sums_of_rows_in_any_order": "F1",
    "matmul_with_the_contraction_outside": "F1",
    "first_blocks_of_a_dynamic_grid": "PAL420 where a dynamic grid is given its size",
    "copied_by_all_subcores": "PAL907 on SparseCores",
    "doubled_in_vectors_of_lanes": "PAL907 on SparseCores",
}
ACCUSED_FROM = {"same_ones_by_both_blocks_of_a_cluster": ((0, 11, 0), "F9")}
# The same of captured launches, by the file and the function that the finding is in.
ACCUSED_LAUNCHES = {
    "tpu_handed_on.py::begin": "F3",
    "tpu_handed_on.py::end": "F3",
    "tpu_handed_on.py::key_that_is_not_used": "F3",
    "tpu_handed_on.py::numbers_drawn_with_a_key": "F3",
    "tpu_handed_on.py::fetched_from_the_host": "F5",
    "tpu_handed_on.py::_corner": "F4",
    "tpu_handed_on.py::_running_counts": "F4",
    "tpu_launched.py::first_blocks_of_a_dynamic_grid": "PAL420 where a dynamic grid is given its size",
    "tpu_operands.py::_softmax_gradient": "F11",
    "tpu_operands.py::_root_of_saved_moments": "F11",
    "tpu_operands.py::_inverted": "F11",
    "tpu_operands.py::_orthogonalised": "F11",
    "tpu_operands.py::_distance": "F11",
    "tpu_operands.py::_masked": "F12",
    "tpu_operands.py::sums_of_rows_in_any_order": "F1",
    "tpu_operands.py::matmul_with_the_contraction_outside": "F1",
    "tpu_sharded.py::tripled": "F2",
    "triton_masks.py::_softmax_gradient": "F11",
    "tpu_sharded.py::summed": "F2",
    "tpu_sharded.py::device_number_as_an_operand": "F2",
    "tpu_sharded.py::sharded_and_replicated_arguments": "F2",
    "tpu_sharded.py::passed_on": "F2",
    "tpu_sharded.py::gathered_around_a_ring": "F2",
    "tpu_sharded.py::exchanged_along_one_axis_of_two": "F2",
}


def judged(findings: list[Finding]) -> list[str]:
    return [f"{each.span} {each.code} {each.message}" for each in findings if each.severity is not Severity.INFO]


@pytest.mark.parametrize("file", FILES)
def test_the_text(file: str) -> None:
    """On the oldest release, on the newest, and for all of them together."""
    oldest = ".".join(map(str, FILES[file][0]))
    for versions in (None, oldest, f">={oldest}"):
        assert judged(lint_text(text_of(file), versions)) == [], versions


@pytest.mark.parametrize("file", [file for file in FILES if FILES[file][1] == ("tpu:v5e",)])
def test_the_text_for_every_tpu(file: str) -> None:
    """The compilers of most of them were not asked when the data were measured."""
    oldest = ".".join(map(str, FILES[file][0]))
    for device in ("v4", "v5p", "v6e", "tpu7x"):
        found = lint_text(text_of(file), oldest, f"tpu:{device}")
        assert [text for text in judged(found) if (device, text.split()[-1]) not in REFUSED] == [], device


@pytest.mark.slow
def test_a_captured_program_with_values_of_its_own() -> None:
    """Its launches are compiled as they stand in it, and run on the values that it has."""
    if jax_version() < FILES["capture_programs.py"][0]:
        pytest.skip("its kernels need a newer jax")
    devices = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    options = ("--target", "tpu:v5e", "--output-format", "json", "--")
    done = running.run("--capture", *options, python(), "capture_programs.py", cwd=HERE, env=devices)
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
    wrong = {}
    with Worker(python(), HERE) as worker:
        for spec in specs_of(file):
            reference = f"expected_{spec.function}"
            result = Session(worker, HERE, Conditions(targets, None, reference)).probe(spec)
            findings, errors = findings_of(result, HERE, Lines(HERE).line)
            lowered = [stage for launch in result.launches for stage in launch.stages if stage.stage == "lower"]
            complaints = judged(findings) + [str(error) for error in errors]
            if complaints or not lowered or not all(stage.ok for stage in lowered):
                wrong[spec.function] = complaints or "it was not lowered"
    accused = {*ACCUSED, *(name for name, (since, _) in ACCUSED_FROM.items() if jax_version() >= since)}
    known = accused & {spec.function for spec in specs_of(file)}
    assert {name: wrong.get(name, "not accused any more") for name in wrong.keys() ^ known} == {}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    chosen = FILES if os.environ.get("PALLAS_LINT_NIGHTLY") else AROUND
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "WORKING_FILES": " ".join(chosen)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=1200, cwd=HERE.parents[1], env=environment, check=False
    )


@cache
def definitions(path: str) -> list[tuple[int, int, str]]:
    """The functions at the top of a file: first line, last line, name."""
    body = ast.parse(Path(path).read_text(encoding="utf-8")).body
    return [(each.lineno, each.end_lineno or 0, each.name) for each in body if isinstance(each, ast.FunctionDef)]


def place(path: str, line: int) -> str:
    """The file and the function in it that a line belongs to."""
    names = [name for first, last, name in definitions(str(HERE / Path(path).name)) if first <= line <= last]
    return f"{Path(path).name}::{names[0] if names else line}"


@pytest.mark.slow
def test_a_captured_program() -> None:
    command = (sys.executable, "-m", "pallas_lint", "probe", "--capture", "--output-format", "json", "--")
    done = run(*command, python(), "-m", "tests.working.every_kernel")
    assert done.stdout, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout)
    assert "the program ended with status" not in done.stderr, done.stderr[-3000:]
    wrong = {
        place(each["path"], each["start"]["line"]): f"{each['code']} {each['message']}"
        for each in report["findings"]
        if each["severity"] != "info"
    }
    assert {name: wrong.get(name, "not accused any more") for name in wrong.keys() ^ ACCUSED_LAUNCHES.keys()} == {}
    assert report["errors"] == []
    assert len(report["launches"]) > 50


@pytest.mark.slow
def test_a_captured_run_of_pytest() -> None:
    options = ("-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, f"--rootdir={HERE.parents[1]}")
    done = run(python(), "-m", "pytest", *options, "--pallas-lint", str(HERE / "every_kernel.py"))
    assert done.returncode == bool(ACCUSED_LAUNCHES), done.stdout[-3000:] + done.stderr[-3000:]
    assert "launches of" in done.stdout
