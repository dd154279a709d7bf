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
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.report.lines import Lines
from pallas_lint.testing import lint_text
from tests.probe import running
from tests.probe.running import jax_version
from tests.rules.interpreted import python
from tests.sampling import NIGHT, by_day
from tests.working.files import FILES, HERE, specs_of, text_of

if TYPE_CHECKING:
    from pallas_lint.finding import Finding
    from pallas_lint.probe.client import Worker

# What compilers of other devices do refuse, by the probe comment that tells the types: v4 multiplies no int8.
REFUSED = {("v4", "line 58")}


def judged(findings: list[Finding]) -> list[str]:
    return [f"{each.span} {each.code} {each.message}" for each in findings if each.severity is not Severity.INFO]


@pytest.mark.parametrize("file", FILES)
def test_the_text(file: str) -> None:
    """For all releases together and on the newest; at night on the oldest alone, too."""
    oldest = ".".join(map(str, FILES[file][0]))
    for versions in (None, f">={oldest}", *([oldest] if NIGHT else ())):
        assert judged(lint_text(text_of(file), versions)) == [], versions


@pytest.mark.nightly
@pytest.mark.parametrize("file", [file for file in FILES if FILES[file][1] == ("tpu:v5e",)])
def test_the_text_for_every_tpu(file: str) -> None:
    """Most of them were not compiled when the data were measured."""
    oldest = ".".join(map(str, FILES[file][0]))
    for device in ("v4", "v5p", "v6e", "tpu7x"):
        found = lint_text(text_of(file), oldest, f"tpu:{device}")
        assert [text for text in judged(found) if (device, text.rpartition(" in ")[2]) not in REFUSED] == [], device


@pytest.mark.nightly
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


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_the_probe(worker: Worker, file: str) -> None:
    """Of some kernels of each file, at night of all."""
    oldest, targets = FILES[file]
    if jax_version() < oldest:
        pytest.skip(f"its kernels need jax {oldest}")
    wrong = {}
    for spec in by_day(specs_of(file)):
        reference = f"expected_{spec.function}"
        result = Session(worker, HERE, ProbeOptions(targets, None, reference)).probe(spec)
        findings, errors = findings_of(result, HERE, Lines(HERE).line)
        lowered = [stage for launch in result.launches for stage in launch.stages if stage.stage == "lower"]
        complaints = judged(findings) + [str(error) for error in errors]
        if complaints or not lowered or not all(stage.ok for stage in lowered):
            wrong[spec.function] = complaints or "it was not lowered"
    assert wrong == {}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
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


@pytest.mark.nightly
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
    assert wrong == {}
    assert report["errors"] == []
    assert len(report["launches"]) > 50


@pytest.mark.nightly
def test_a_captured_run_of_pytest() -> None:
    options = ("-q", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull, f"--rootdir={HERE.parents[1]}")
    done = run(python(), "-m", "pytest", *options, "--pallas-lint", str(HERE / "every_kernel.py"))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "launches of" in done.stdout
