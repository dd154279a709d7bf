"""Values that are offered for operands of Mosaic GPU kernels, on every way on which they come to a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pallas_lint.probe.findings import findings_of
from pallas_lint.probe.session import ProbeOptions, Session
from pallas_lint.probe.specs import parse_target
from pallas_lint.report.lines import Lines
from tests.interleaving.test_gpu_probing import HERE, findings, worker

if TYPE_CHECKING:
    from pallas_lint.probe.client import Worker

pytestmark = pytest.mark.slow
__all__ = ["worker"]

X = "f32[64,128]"
WAYS = ["plain", "jitted", "with_a_rule", "branched", "in_a_loop", "with_state", "computed"]


def verdict(worker: Worker, name: str, *words: str) -> tuple[str, list[str]]:
    """What the stage says, and what is found."""
    result, found = findings(worker, f"steered.py::{name}", *words)
    [stage] = [stage for stage in result.launches[-1].stages if stage.stage == "verify"]
    reported = [finding for finding in found if finding.code != "PAL907"]
    return str(stage.detail), [finding.code for finding in reported]


@pytest.mark.parametrize("name", WAYS)
def test_they_arrive(worker: Worker, name: str) -> None:
    detail, found = verdict(worker, name, "i32[1]=[1]", X)
    assert "every order" in detail and found == []
    detail, found = verdict(worker, name, "i32[1]=[0]", X)
    assert "every order" in detail and found == ["PAL910"]
    detail, found = verdict(worker, name, "i32[1]", X)
    assert "a branch that communicates depends on data (line" in detail and found == []
    assert '` decides: give its argument values, as in "i32[4]=[1,2,3,0]"' in detail


@pytest.mark.parametrize(("copied", "wanted"), [(1, []), (0, ["PAL910"])])
def test_those_that_the_program_has(worker: Worker, copied: int, wanted: list[str]) -> None:
    _, found = verdict(worker, "closed_over", X, str(copied))
    assert found == wanted


@pytest.mark.parametrize(("name", "more"), [("with_state", ["written=True"]), ("overwritten", [])])
def test_what_is_written_is_not_known(worker: Worker, name: str, more: list[str]) -> None:
    for copied in (0, 1):
        detail, found = verdict(worker, name, f"i32[1]=[{copied}]", X, *more)
        assert "a branch that communicates depends on data (line" in detail and found == []


def test_launches_of_one_kernel_have_their_own(worker: Worker) -> None:
    result, found = findings(worker, "steered.py::twice", X)
    ends = {}
    for launch in result.launches:
        stage = launch.stage("verify")
        assert launch.place is not None and stage is not None
        ends[launch.place["line"]] = stage.ok
    assert [ok for _, ok in sorted(ends.items())] == [True, False]
    assert [finding.code for finding in found] == ["PAL910"]


@pytest.mark.parametrize(
    ("defect", "wanted"),
    [("", []), ("freed once", ["PAL910"]), ("not waited for", ["PAL905", "PAL912"])],
)
def test_work_of_other_clusters(worker: Worker, defect: str, wanted: list[str]) -> None:
    """The first cluster gets some of it; that of a grid of one gets none."""
    detail, found = verdict(worker, "scheduled", "f32[640,128]", f"defect={defect!r}")
    assert "every order" in detail and sorted(set(found)) == wanted
    detail, found = verdict(worker, "scheduled", "f32[64,128]", f"defect={defect!r}")
    assert "every order" in detail and found == []


def test_failures_on_a_requested_gpu(worker: Worker) -> None:
    target = parse_target("steered.py::without_a_message", [X])
    result = Session(worker, HERE, ProbeOptions(targets=("mosaic-gpu:sm90",))).probe(target)
    [found], _ = findings_of(result, HERE, Lines(HERE).line)
    assert found.code == "PAL901" and "of GPUs" in found.message
