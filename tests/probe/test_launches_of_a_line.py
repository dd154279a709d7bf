"""Launches of one line, as of a launcher that is called twice, have their own findings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pallas_lint.finding import Severity
from pallas_lint.probe import places
from pallas_lint.probe.results import LaunchResult, ProbeResult
from tests.probe.running import run
from tests.rules.interpreted import python

KERNELS = """
import jax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def doubled(x):
    block = pl.BlockSpec((256, 128), lambda i: (i, 0))
    return pl.pallas_call(kernel, grid=(x.shape[0] // 256,), in_specs=[block], out_specs=block, out_shape=x)(x)


def both(x, y):
    return doubled(x), doubled(y)
"""


def launch(rows: int) -> LaunchResult:
    facts: Any = {
        "kernel": "kernel", "backend": "tpu", "grid": [rows // 8], "place": {"file": "/k.py", "line": 9},
        "operands": [{"dtype": "f32", "shape": [rows, 128], "block": [8, 128]}],
    }  # fmt: skip
    return LaunchResult(facts)


def test_a_finding_is_about_its_launch() -> None:
    known = places.Places(Path("/"), lambda *_: "")
    one, other = launch(8), launch(16)
    result = ProbeResult(None, [one, other])
    builder = places.FindingBuilder(result, known, one)
    finding = builder.finding_at((), "PAL306", Severity.ERROR, "it is not written")
    assert places.is_about(finding, one.facts, 9) and not places.is_about(finding, other.facts, 9)
    assert not places.is_about(finding, one.facts, 10) and not places.is_about(finding, one.facts, 9, "other.py")
    of_function = places.FindingBuilder(result, known).finding_at((), "PAL306", Severity.ERROR, "it is not written")
    assert not of_function.launches


@pytest.mark.slow
def test_a_report_keeps_them_apart(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    words = ("kernels.py::both", "f32[512,128]", "f32[520,128]", "--stage", "grid", "--target", "tpu:v5e")
    done = run(*words, "--python", python(), "--html", "report.html", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    tags = re.findall(r'<span class="tag \w+">([^<]+)</span></li>', (tmp_path / "report.html").read_text())
    assert tags == ["nothing found", "1 finding"]
