"""Runs the probe as users do, or many functions in one worker where only what is found counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.probe.specs import parse_target
from pallas_lint.report.lines import Lines
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from pallas_lint.finding import Finding, LintError
    from pallas_lint.probe.client import Worker
    from pallas_lint.probe.results import LaunchResult

HERE = Path(__file__).parent
KERNELS = HERE / "kernels.py"
X = "f32[32,128]"
# What a run looks like where neither libtpu nor jax's version plays a part.
WITHOUT_COMPILER = ("--stage", "interpret")


def run(*arguments: str, cwd: Path = HERE, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pallas_lint", "probe", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, **(env or {})},
        check=False,
    )


def probe(function: str, *arguments: str) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    done = run(f"kernels.py::{function}", *arguments, "--python", python(), "--output-format", "json")
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout), done


class Probed:
    """What the probe says of one function: of kernels.py, or as `file.py::function`."""

    launches: list[LaunchResult]
    findings: list[Finding]
    errors: list[LintError]

    def __init__(self, worker: Worker, function: str, *arguments: str, **conditions: Any) -> None:
        spec = parse_target(function if "::" in function else f"kernels.py::{function}", arguments)
        result = Session(worker, HERE, ProbeOptions(**conditions)).probe(spec)
        self.launches = result.launches
        self.findings, self.errors = findings_of(result, HERE, Lines(HERE).line)

    @property
    def codes(self) -> list[str]:
        return [finding.code for finding in self.findings]

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(finding.code, finding.span.start.line) for finding in self.findings]

    @property
    def stages(self) -> dict[tuple[str, str | None], bool | None]:
        """How each stage of the only launch went, by its name and target."""
        (launch,) = self.launches
        return {(stage.stage, stage.target): stage.ok for stage in launch.stages}


@cache
def jax_version() -> tuple[int, ...]:
    reported = subprocess.run(
        [python(), "-c", "from importlib.metadata import version as v; print(v('jax'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return tuple(int(part) for part in reported.stdout.strip().split(".")[:3])


def line_of(text: str) -> int:
    return next(at for at, line in enumerate(KERNELS.read_text().splitlines(), 1) if text in line)
