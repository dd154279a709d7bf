"""Mosaic GPU kernels through the probe: what each defect of theirs is called, on a machine without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pallas_lint.probe.client import Worker
from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.probe.specs import parse_target
from pallas_lint.report.lines import Lines
from tests.rules.interpreted import python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pallas_lint.finding import Finding
    from pallas_lint.probe.results import ProbeResult

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent

OPERANDS = {
    "total": ["f32[128,128]", "f32[128,128]"],
    "product": ["f16[64,128]", "f16[128,128]"],
    "pipelined": ["f16[64,512]", "f16[512,128]"],
    "specialised": ["f32[256,128]"],
    "handed_on": ["f32[64,128]"],
    "ring": ["f32[512,128]"],
    "warps": ["f32[64,128]"],
    "stored_by_warps": ["f32[64,128]"],
    "scopes": ["f32[256,128]"],
    "multicast": ["f32[128,128]", "f32[128,128]"],
    "written_twice": ["f32[64,128]"],
}
# Function, defect, and what is found. Errors are what cannot come right, or what an H100 got wrong.
DEFECTS = [
    *((name, "", {}) for name in OPERANDS if name != "written_twice"),
    ("total", "no wait", {"PAL905": "error"}),
    ("total", "one arrival", {"PAL905": "error", "PAL912": "warning"}),
    ("total", "three arrivals", {"PAL910": "error"}),
    ("product", "refilled", {"PAL905": "warning"}),
    ("product", "no fence", {"PAL416": "warning"}),
    ("pipelined", "released at once", {"PAL905": "warning"}),
    ("pipelined", "no wait", {"PAL905": "warning"}),
    ("specialised", "a warpgroup too many", {"PAL905": "error", "PAL912": "warning"}),
    ("handed_on", "no fence", {"PAL416": "warning"}),
    ("handed_on", "no arrival", {"PAL910": "error"}),
    ("handed_on", "no wait", {"PAL905": "warning"}),
    ("ring", "waits for too few", {"PAL905": "warning"}),
    ("ring", "no wait at the end", {"PAL905": "warning"}),
    ("warps", "no wait", {"PAL905": "error"}),
    ("stored_by_warps", "no wait", {"PAL905": "warning"}),
    ("stored_by_warps", "waits for too few", {"PAL905": "warning"}),
    ("written_twice", "", {"PAL905": "warning"}),
    ("written_twice", "differ", {"PAL905": "error"}),
    ("scopes", "no wait", {"PAL905": "error"}),
    ("multicast", "refilled for both", {"PAL905": "error"}),
]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(python(), HERE) as worker:
        yield worker


def test_the_kernels_of_the_page(worker: Worker) -> None:
    page = (HERE.parents[1] / "docs/mosaic-gpu.md").read_text()
    found = [findings(worker, f"refill.py::{name}", "f32[512,128]")[1] for name in ("double", "double_in_turn")]
    [overrun, race], mended = found
    assert (overrun.code, race.code, mended) == ("PAL912", "PAL905", [])
    where = race.span.start
    assert f"refill.py:{where.line}:{where.column} {race.code} {race.name} [error]\n  {race.message}\n" in page


def probe(worker: Worker, name: str, defect: str) -> tuple[ProbeResult, list[Finding]]:
    return findings(worker, f"warpgroups.py::{name}", *OPERANDS[name], *([f"defect={defect!r}"] if defect else []))


def findings(worker: Worker, target: str, *words: str) -> tuple[ProbeResult, list[Finding]]:
    spec = parse_target(target, words)
    result = Session(worker, HERE, ProbeOptions(stage="verify")).probe(spec)
    found, errors = findings_of(result, HERE, Lines(HERE).line)
    assert not errors, errors
    return result, found


@pytest.mark.parametrize(("name", "defect", "wanted"), DEFECTS, ids=[f"{a} {b}" for a, b, _ in DEFECTS])
def test_what_a_defect_is_called(worker: Worker, name: str, defect: str, wanted: dict[str, str]) -> None:
    result, found = probe(worker, name, defect)
    [launch] = result.launches
    stage = launch.stage("verify")
    assert stage is not None and stage.ok is (not wanted), stage
    worst = {each.code: each.severity.value for each in sorted(found, key=lambda each: each.severity.rank)}
    assert worst == wanted
    assert all(finding.backend == "mosaic_gpu" for finding in found), found


def test_the_lines_are_named(worker: Worker) -> None:
    _, found = probe(worker, "handed_on", "no fence")
    [finding] = found
    assert finding.message == (
        "the copy that warpgroup 1 starts may not see what warpgroup 0 wrote to `smem`: no `commit_smem` in between"
    )


def test_code_of_which_nothing_is_known(worker: Worker) -> None:
    result, found = findings(worker, "warpgroups.py::synchronised_inline", "f32[64,128]")
    stage = result.launches[0].stage("verify")
    assert stage is not None and stage.ok is None and not found
    assert "not modelled: `inline_mgpu` (line" in (stage.detail or "")
